"""Two lines in a DAG file turn pipeline files into DAGs, as Airflow's DAG processor sees them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

SAMPLE = yaml.safe_load((ROOT / "dags" / "pipelines" / "telemetry.yaml").read_text())
ACTIONS = ["", ".approval", ".check", ".rollback", ".update"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder with two pipeline files, and no DAG file."""
    (tmp_path / "pipelines").mkdir()
    for name in ("one", "two"):
        sections = {**SAMPLE, "name": name, "output": {"alias": "aggregates", "table": f"tables/{name}"}}
        del sections["quality"]
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(yaml.safe_dump(sections))
    return tmp_path


def examples(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^( *)```python\n(.*?)^ *```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


def parsed_from(parse: Any, bundle: Path, text: str) -> dict[str, Any]:
    (bundle / "team.py").write_text(text)
    parsed: dict[str, Any] = parse(bundle)
    return parsed


def made_by(parse: Any, bundle: Path, arguments: str) -> dict[str, dict[str, Any]]:
    """Return the DAGs that RecaptureDags makes with these arguments, by id."""
    parsed = parsed_from(parse, bundle, f"from recapture_airflow import RecaptureDags\n{arguments}\n")
    assert parsed["errors"] == {}
    return {dag["dag_id"]: dag for dag in parsed["dags"]}


def task(dag: dict[str, Any], name: str = "order_and_aggregate") -> dict[str, Any]:
    return next(task["__var"] for task in dag["tasks"] if task["__var"]["task_id"] == name)


@pytest.mark.parametrize("page", ["README.md", "docs/airflow.md"])
def test_the_examples_of_the_pages_make_the_dags_of_every_file_in_the_folder(
    parse: Any, bundle: Path, page: str
) -> None:
    for indent, example in examples(page):
        text = "\n".join(line.removeprefix(indent) for line in example.splitlines())
        parsed = parsed_from(parse, bundle, text)
        assert parsed["errors"] == {}
        assert sorted(dag["dag_id"] for dag in parsed["dags"]) == [
            f"{name}{action}" for name in ("one", "two") for action in ACTIONS
        ]


def test_one_file_can_be_named_instead_of_a_folder(parse: Any, bundle: Path) -> None:
    dags = made_by(parse, bundle, "RecaptureDags('pipelines/two.yaml')")
    assert sorted(dags) == [f"two{action}" for action in ACTIONS]


def test_the_arguments_say_how_the_dags_run_and_the_pipeline_file_when_updates_begin(parse: Any, bundle: Path) -> None:
    arguments = (
        "def notify(context): ...\n"
        "RecaptureDags(owner='data-team', tags=['ours'], retries=5, pools={'spark': 'small', 'history': 'old'},"
        " default_args={'queue': 'large', 'on_failure_callback': notify}, on_failure_callback=notify)"
    )
    dags = made_by(parse, bundle, arguments)
    for dag in dags.values():
        assert {"recapture", "ours"} <= set(dag["tags"])
        assert dag["has_on_failure_callback"]
    update = dags["one.update"]
    assert update["timetable"]["__var"]["expression"] == "*/10 * * * *"
    computation = task(update)
    assert [computation[name] for name in ("owner", "retries", "pool", "queue")] == ["data-team", 5, "small", "large"]
    assert computation["has_on_failure_callback"]
    assert task(dags["one"])["pool"] == "old"


def test_updates_have_another_schedule_if_the_argument_says_so(parse: Any, bundle: Path) -> None:
    dags = made_by(parse, bundle, "RecaptureDags(schedule='@daily')")
    assert dags["one.update"]["timetable"]["__var"]["expression"] == "0 0 * * *"
    assert dags["one"]["timetable"]["__type"].endswith("SliceTimetable")


def test_without_pools_a_dag_computes_one_range_at_a_time(parse: Any, bundle: Path) -> None:
    dags = made_by(parse, bundle, "RecaptureDags()")
    for name in ("one", "one.update"):
        computation = task(dags[name])
        assert (computation.get("pool", "default_pool"), computation["max_active_tis_per_dag"]) == ("default_pool", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'nothing'", "nothing: the pipeline file cannot be read (No such file or directory)"),
        ("'.'", "has no pipeline file: write NAME.yaml there, or name another folder"),
        ("catchup=True", "RecaptureDags sets `catchup` of its DAGs itself: remove the argument"),
        ("pools={'slow': 'a'}", "pools has the key 'slow': use spark, processes, history"),
    ],
)
def test_what_cannot_be_made_is_one_import_error_that_says_what_to_do(
    parse: Any, bundle: Path, arguments: str, message: str
) -> None:
    parsed = parsed_from(parse, bundle, f"from recapture_airflow import RecaptureDags\nRecaptureDags({arguments})\n")
    assert parsed["dags"] == []
    (error,) = parsed["errors"].values()
    assert message in error


def test_spark_runs_a_script_of_the_package(parse: Any, bundle: Path) -> None:
    application = Path(task(made_by(parse, bundle, "RecaptureDags()")["one"])["application"])
    assert application.parts[-3:] == ("recapture_airflow", "application", "backfill.py")
    assert application.read_bytes() == (ROOT / "spark_jobs" / "backfill.py").read_bytes()
