"""What every test shares. HYPOTHESIS_PROFILE=deep draws many random examples (see `tests.draws`)."""

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from embedded.azurite import Azurite
from tests.draws import load_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

load_profile()

LONG = (
    "e2e/",
    "benchmarks/",
    "run/test_same_run.py",
    "table/test_publish_interleavings.py",
    "run/test_spark_settings.py",
)
"""Files whose tests take long: first, so that no worker begins one when the others have finished."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.removeprefix("tests/").startswith(LONG))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """The storage emulator, in memory, on a free port; one for the whole run."""
    with Azurite(tmp_path_factory.mktemp("azurite") / "azurite.log") as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark session for the whole run: two cores, in UTC, without its web page, quick to start."""
    from pyspark.sql import SparkSession

    from recapture.run.session import pin_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.WARNING)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("recapture-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    pin_settings(session)
    yield session
    session.stop()
