"""The same archive and definition give the same run in every process, for every input format."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.execute.processes.workers import Workers
from recapture.run.plan import preview
from tests.commands import FIRST_HOUR
from tests.formats.samples import SAMPLES
from tests.formats.test_published import archive, defined
from tests.paths import ROOT
from tests.worlds import TEN, at, backfill, version

KINDS = [kind for kind in SAMPLES if kind != "IoT Hub, JSON"]
"""The tested formats. IoT Hub's two kinds of blobs have the same input section."""
COMMANDS = """
import contextlib, io, json, sys
from recapture import cli
for arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main([*arguments, "--json"])
    print(json.dumps([code, json.loads(out.getvalue() or "null")]))
"""


def commands(seed: int, *arguments: list[str]) -> list[dict[str, Any]]:
    """Run commands one after the other in a process of their own; return what they print."""
    completed = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(arguments)],
        env=os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in completed.stdout.splitlines()]
    assert [code for code, _ in outcomes] == [0] * len(arguments), completed.stderr
    return [printed for _, printed in outcomes]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of an archive and a pipeline file, for each format."""
    homes = {}
    for kind in KINDS:
        homes[kind] = tmp_path_factory.mktemp("format")
        archive(homes[kind], kind)
        defined(homes[kind], kind)
    return homes


def test_a_run_has_one_name_whatever_the_hash_seed_and_its_rerun_publishes_nothing_new(
    processes: Workers, homes: dict[str, Path]
) -> None:
    """The rerun is one of this process, which has a hash seed of its own."""
    plans = [["plan", str(home / "telemetry.yaml"), *FIRST_HOUR] for home in homes.values()]
    csv = homes["CSV"] / "telemetry.yaml"
    planned = commands(1, *plans)
    *planned_again, first = commands(2, *plans, ["backfill", str(csv), *FIRST_HOUR])
    again = backfill(processes, load(csv), TEN, at(60))
    assert [printed["run"] for printed in planned_again] == [printed["run"] for printed in planned]
    run = planned[KINDS.index("CSV")]["run"]
    assert (first["run"], first["changed"]) == (run, True)
    assert (again["run"], again["changed"]) == (run, False)
    assert version(csv.parent / "table") == 1


def test_a_key_that_changes_what_events_are_makes_another_run(homes: dict[str, Path]) -> None:
    def run(**keys: Any) -> str:
        return preview(defined(homes["Service Bus"], "Service Bus", **keys), TEN, at(60)).run

    plain = run()
    assert run(time_format="HH-mm", date_format="YYYY/MM/DD") == plain
    assert run(fields={"body": "Other"}) != plain
    assert run() == plain
