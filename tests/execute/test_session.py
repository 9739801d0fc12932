"""A backfill whose Java ends says so in one line, and what to do."""

from pathlib import Path

import pytest

from tests.conftest import Python
from tests.worlds import QUICK_START

SESSION = """
import sys
from pathlib import Path
from recapture.errors import RunError
from recapture.execute.spark.session import spark_session

try:
    with spark_session("local[1]", "ends", Path(sys.argv[1])) as spark:
        {statement}
except RunError as error:
    print(error)
"""
KILLED = "spark.sparkContext._gateway.proc.kill() or spark.range(1).count()"
FULL = "spark.sql('SELECT size(array_repeat(id, 400000000)) FROM range(1)').collect()"
MORE_MEMORY = "give Spark more memory, for example with SPARK_DRIVER_MEMORY=4g, or backfill fewer hours at once"


@pytest.mark.parametrize(("statement", "code"), [(KILLED, -9), (FULL, 52)], ids=["killed", "no memory left"])
def test_the_end_of_java_is_an_error_that_says_what_to_do(
    python: Python, tmp_path: Path, statement: str, code: int
) -> None:
    script = SESSION.format(statement=statement)
    environment = {"JAVA_TOOL_OPTIONS": QUICK_START, "SPARK_DRIVER_MEMORY": "600m"}
    completed = python("-c", script, str(tmp_path), **environment)
    assert (
        completed.stdout.decode()
        == f"Java, which runs Spark, ended with code {code}: if it had no memory left, {MORE_MEMORY}\n"
    )


def test_with_v_what_spark_prints_at_its_start_is_shown_once(python: Python, tmp_path: Path) -> None:
    script = "from recapture.process import log; log.enable()\n" + SESSION.format(statement="spark.range(1).count()")
    completed = python("-c", script, str(tmp_path), JAVA_TOOL_OPTIONS=QUICK_START)
    assert completed.stdout == b""
    assert completed.stderr.count(b"Setting Spark log level") == 1
