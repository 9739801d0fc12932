"""The temporary files of Spark's Python workers."""

import socket
from pathlib import Path

import pyarrow as pa
import pytest

from recapture.errors import RunError
from recapture.execute.spark.failures import MORE_SPACE
from recapture.execute.spark.part_files import local_folder, write_batches


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with pytest.raises(RunError) as raised, local_folder():
        write_batches(iter([pa.record_batch({"n": [1]})]), Path("/dev/full"))
    assert str(raised.value) == f"the disk with {tmp_path} is full on {socket.gethostname()}: {MORE_SPACE}"
    assert list(tmp_path.iterdir()) == []
