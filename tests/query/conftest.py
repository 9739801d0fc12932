"""How Spark runs the queries of these tests."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.paths import ROOT
from tests.settings import interpreting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPILED = (
    "analyse/",
    "functions/",
    "generate/test_casts.py",
    "generate/test_in_tasks.py",
    "generate/test_kinds.py",
    "generate/test_patterns.py",
    "generate/test_published_windows.py",
    "test_geography.py",
)
"""Files whose queries are compiled as in a run: they test single values, or compare Spark with the tasks bit by bit."""


@pytest.fixture(scope="module")
def spark(spark: "SparkSession", request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    """The session of all tests. It interprets most queries, except in the profile `deep`."""
    file = request.path.relative_to(ROOT / "tests" / "query").as_posix()
    compiled = file.startswith(COMPILED) or settings.get_current_profile_name() == "deep"
    with nullcontext() if compiled else interpreting(spark):
        yield spark
