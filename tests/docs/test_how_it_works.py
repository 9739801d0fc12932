"""How it works: the page's Python runs block by block, and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_walkthrough import pattern, without_digests
from tests.paths import ROOT

BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("great_expectations")
def test_every_block_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code, shown in BLOCKS.findall((ROOT / "docs" / "how-it-works.md").read_text("utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert re.fullmatch(pattern(shown), without_digests(printed.getvalue())), f"{code}\n{printed.getvalue()}"
