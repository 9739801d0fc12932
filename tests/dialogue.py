"""A Python process that loads Airflow once and then answers one question after the other, a line of JSON each."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Ask = Callable[[Any], Any]


@contextmanager
def dialogue(program: Sequence[str], home: Path, **variables: str) -> Iterator[Ask]:
    """Start Python with the arguments `program`, in an Airflow whose home is `home`; yield what asks it."""
    env = os.environ | {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"} | variables
    log = home / "log"
    with (
        log.open("wb") as standard_error,
        subprocess.Popen(
            [sys.executable, *program],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=standard_error,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: Any) -> Any:
            questions.write(f"{json.dumps(question)}\n")
            questions.flush()
            line = answers.readline()
            assert line, log.read_text()[-5000:]
            return json.loads(line)

        yield ask
        questions.close()
