"""A notifier of Airflow for tests: it appends what it is told to a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier


class FileNotifier(BaseNotifier):
    """Appends a line to a file. Both arguments are templates."""

    template_fields = ("file", "line")

    def __init__(self, file: str, line: str) -> None:
        super().__init__()
        self.file = file
        self.line = line

    def notify(self, context: Mapping[str, Any]) -> None:
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(f"{self.line}\n")
