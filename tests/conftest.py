"""What every test shares."""

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from embedded.azurite import Azurite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("recapture", deadline=None, max_examples=100, derandomize=os.environ.get("CI") == "true")
settings.load_profile("recapture")


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """The storage emulator, in memory, on a free port; one for the whole run."""
    with Azurite(log=tmp_path_factory.mktemp("azurite") / "azurite.log") as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark session for the whole run: two cores, in UTC, without its web page, quick to start."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.WARNING)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("recapture-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()
