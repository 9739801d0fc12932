"""A run on a server of Spark Connect stages the same files as one in a session of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from recapture.errors import DefinitionError
from recapture.execute.spark.connect import connected_session
from tests.blobs import rewrite, write_blob
from tests.commands import FIRST_HOUR
from tests.conftest import Python
from tests.worlds import COUNTS, QUICK_START, TELEMETRY, TEN, World, at, backfill, files, lenient, steady

LAG = (
    "SELECT System.Timestamp() AS t, deviceId, temperature - LAG(temperature) OVER (PARTITION BY deviceId "
    "LIMIT DURATION(minute, 30)) AS rise INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
)
JOINED = (
    "SELECT System.Timestamp() AS t, telemetry.deviceId, telemetry.temperature, devices.site INTO aggregates "
    "FROM telemetry TIMESTAMP BY eventTime LEFT JOIN devices ON telemetry.deviceId = devices.deviceId"
)
DEVICES = {"type": "Reference", "alias": "devices", "container": "reference", "format": "Csv", "path": "devices.csv"}
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SPARK = Path(pyspark.__file__).parent
WITHOUT_JAVA = (
    "import sys; sys.modules['py4j'] = sys.modules['pyspark.core'] = None; from recapture.cli import run; run()"
)
"""The command where only pyspark-client is installed, which has neither of these packages."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with two cores, whose workers run this Python."""
    home = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    settings |= {"spark.ui.enabled": "false", "spark.local.dir": str(home)}
    options = [option for name, value in settings.items() for option in ("--conf", f"{name}={value}")]
    command = [str(SPARK / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]", *options]
    variables = {"SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"PYTHONPATH": os.pathsep.join(sys.path), "JAVA_TOOL_OPTIONS": QUICK_START}
    log = home / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "spark-internal"], env=os.environ | variables, stdout=output, stderr=output, cwd=home
        )
    try:
        while not listens(port):
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def computed(
    python: Python, world: World, server: str, command: Sequence[str] = ("-m", "recapture.cli")
) -> tuple[int, str]:
    """Backfill the hour from ten on a server; return the exit code and what was printed on standard error."""
    completed = python(*command, "backfill", str(world.file), *FIRST_HOUR, "--master", server)
    return completed.returncode, completed.stderr.decode()


@pytest.mark.parametrize("query", [COUNTS, LAG, JOINED], ids=["tumbling", "LAG", "reference data"])
def test_a_server_stages_the_same_bytes(
    spark: SparkSession, server: str, python: Python, tmp_path: Path, query: str
) -> None:
    world = steady(tmp_path, hours=1)
    write_blob(tmp_path / "reference" / "devices.csv", b"deviceId,site\ndevice-0-1,roof\n", TEN)
    inputs = [TELEMETRY, DEVICES] if query == JOINED else [TELEMETRY]
    quality = lenient(world)
    backfill(spark, world.define(query, table="here", inputs=inputs, quality=quality), TEN, at(60))
    world.define(query, table="there", inputs=inputs, quality=quality)
    assert computed(python, world, server) == (0, "")
    assert files(tmp_path / "there") == files(tmp_path / "here") != {}


def test_a_server_needs_no_java_of_the_client(server: str, python: Python, tmp_path: Path) -> None:
    world = steady(tmp_path, hours=1)
    world.define(quality=lenient(world))
    assert computed(python, world, server, ["-c", WITHOUT_JAVA]) == (0, "")
    assert files(world.table) != {}


def test_an_error_of_a_task_on_a_server_is_one_line(server: str, python: Python, tmp_path: Path) -> None:
    world = steady(tmp_path, hours=1)
    world.define()
    blob = next(path for path in sorted(world.capture.rglob("*.avro")) if path.stat().st_size > 1000)
    rewrite(blob, blob.read_bytes()[:-40] + bytes(40))
    code, said = computed(python, world, server)
    assert code == 1
    (line,) = said.splitlines()
    assert line.startswith("recapture: blob ")
    assert "is damaged: " in line


def test_a_server_that_does_not_answer_is_named(python: Python, tmp_path: Path) -> None:
    world = steady(tmp_path, hours=1)
    world.define()
    code, said = computed(python, world, "sc://127.0.0.1:1")
    assert code == 1
    (line,) = said.splitlines()
    assert line.startswith("recapture: Spark Connect at sc://127.0.0.1:1 cannot be used (")
    assert line.endswith("): check the address and the server")


@pytest.mark.parametrize(
    "address",
    [
        "sc://host:443/;use_ssl=true;token=secret",
        "sc://host:443;token=secret",
        "sc://host:443/?Token=secret",
        "sc://user:secret@host:443/",
    ],
)
def test_a_token_in_the_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(DefinitionError) as error, connected_session(address, "a"):
        pass
    assert str(error.value) == (
        "sc://host:443: the address has a token: remove it, and set SPARK_CONNECT_AUTHENTICATE_TOKEN in the environment"
    )
