"""The DAGs, as Airflow's own DAG processor sees them."""

import json
import shutil
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from recapture.run.stages import Stage
from tests.airflow_versions import needs_airflow
from tests.paths import ROOT

DAGS = ROOT / "dags"
TELEMETRY_DAGS = ["telemetry", "telemetry.approval", "telemetry.check", "telemetry.rollback", "telemetry.update"]


@pytest.fixture(scope="module")
def parsed(parse: Any) -> dict[str, Any]:
    return parse(DAGS)


def dag_in(parsed: dict[str, Any], dag_id: str) -> dict[str, Any]:
    dag: dict[str, Any] = next(dag for dag in parsed["dags"] if dag["dag_id"] == dag_id)
    return dag


@pytest.fixture(scope="module")
def telemetry(parsed: dict[str, Any]) -> dict[str, Any]:
    return dag_in(parsed, "telemetry")


@pytest.fixture(scope="module")
def update(parsed: dict[str, Any]) -> dict[str, Any]:
    return dag_in(parsed, "telemetry.update")


def ids(parsed: dict[str, Any]) -> list[str]:
    return sorted(dag["dag_id"] for dag in parsed["dags"])


def tasks(dag: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["__var"]["task_id"]: task["__var"] for task in dag["tasks"]}


def followers(dag: dict[str, Any]) -> dict[str, set[str]]:
    """Return the tasks that follow each task."""
    return {name: set(task.get("downstream_task_ids", ())) for name, task in tasks(dag).items()}


def test_each_pipeline_file_has_its_dags_and_no_import_error(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert [path.name for path in (DAGS / "pipelines").glob("*.yaml")] == ["telemetry.yaml"]
    assert ids(parsed) == TELEMETRY_DAGS


def test_only_the_updates_are_paused_when_they_are_new(parsed: dict[str, Any]) -> None:
    created = {dag["dag_id"]: dag.get("is_paused_upon_creation") for dag in parsed["dags"]}
    assert created == dict.fromkeys(TELEMETRY_DAGS, False) | {"telemetry.update": None}


def test_one_update_and_one_check_at_a_time_write_the_record_of_changed_blobs(parsed: dict[str, Any]) -> None:
    assert {name: dag_in(parsed, f"telemetry.{name}")["max_active_runs"] for name in ("update", "check")} == {
        "update": 1,
        "check": 1,
    }


def test_a_dag_that_is_parsed_again_is_not_a_new_version(parsed: dict[str, Any]) -> None:
    """Nothing that Airflow stores depends on the process, such as the address of an object."""
    assert " object at 0x" not in json.dumps(parsed["dags"])


def test_airflow_stores_the_result_of_a_task_once_and_not_each_of_its_keys_too(parsed: dict[str, Any]) -> None:
    several = [name for dag in parsed["dags"] for name, task in tasks(dag).items() if task.get("multiple_outputs")]
    assert several == []


def test_reading_the_dags_imports_neither_spark_nor_great_expectations(parsed: dict[str, Any]) -> None:
    assert parsed["heavy"] == []


@needs_airflow("3.3", "asset events with a partition for each slice")
def test_the_example_runs_for_each_day_that_has_changed_and_is_paused_when_it_is_new(parse: Any) -> None:
    parsed = parse(DAGS / "examples")
    (dag,) = parsed["dags"]
    assert (parsed["errors"], dag["dag_id"], dag.get("is_paused_upon_creation")) == ({}, "telemetry.daily", None)
    assert dag["timetable"]["__type"].endswith("PartitionedAssetTimetable")


def test_every_dag_has_an_owner_and_a_tag_and_says_when_to_use_it_and_when_not(parsed: dict[str, Any]) -> None:
    for dag in parsed["dags"]:
        assert dag["default_args"]["__var"]["owner"] == "recapture"
        assert "recapture" in dag["tags"]
        assert "When to use it" in dag["doc_md"]
        assert "When not to" in dag["doc_md"]


TELEMETRY = (DAGS / "pipelines" / "telemetry.yaml").read_text()
"""The pipeline file of the sample."""


def parsed_with(parse: Any, folder: Path, **files: str) -> dict[str, Any]:
    """Return what Airflow reads from the DAGs with more pipeline files."""
    shutil.copytree(DAGS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files.items():
        (folder / "pipelines" / f"{name}.yaml").write_text(text)
    parsed: dict[str, Any] = parse(folder)
    return parsed


def changed(parse: Any, folder: Path, name: str = "telemetry", action: str = "", **sections: Any) -> dict[str, Any]:
    """Return a DAG of the sample pipeline with other sections, or another name; None removes one."""
    written = {**yaml.safe_load(TELEMETRY), "name": name, **sections}
    text = yaml.safe_dump({name: section for name, section in written.items() if section is not None})
    parsed = parsed_with(parse, folder, **{name: text})
    assert parsed["errors"] == {}
    return dag_in(parsed, f"{name}{action}")


@pytest.fixture(scope="module")
def deciding(parse: Any, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The DAGs of a pipeline that asks nobody."""
    sections = yaml.safe_load(TELEMETRY)
    del sections["approval"]
    folder = tmp_path_factory.mktemp("deciding") / "dags"
    dags: list[dict[str, Any]] = parsed_with(parse, folder, telemetry=yaml.safe_dump(sections))["dags"]
    return dags


def test_updates_ask_a_person_only_if_the_pipeline_does_and_every_run_by_hand_may_be_staged(
    deciding: list[dict[str, Any]], telemetry: dict[str, Any]
) -> None:
    assert "telemetry.approval" not in [dag["dag_id"] for dag in deciding]
    assert [dag["dag_id"] for dag in deciding if {"approval", "ask"} & {*tasks(dag)}] == ["telemetry"]
    follows = followers(telemetry)
    assert "approval" in follows["audit"]
    assert follows["approval"] == {"publish"}


def test_a_run_that_waits_for_a_person_keeps_no_other_from_starting(
    parsed: dict[str, Any], update: dict[str, Any]
) -> None:
    """An update asks in a DAG run of its own."""
    assert "approval" not in tasks(update)
    assert (followers(update)["audit"], tasks(update)["ask"]["trigger_rule"]) == ({"ask", "publish"}, "one_failed")
    assert [dag_in(parsed, name)["max_active_runs"] for name in ("telemetry", "telemetry.approval")] == [100, 100]
    assert followers(dag_in(parsed, "telemetry.approval")) == {
        "approval": {"publish"},
        "publish": {"report"},
        "report": set(),
    }


def test_a_backfill_may_begin_years_ago(telemetry: dict[str, Any]) -> None:
    """Airflow runs no task of an interval before the start date."""
    assert datetime.fromtimestamp(telemetry["start_date"], UTC).year == 2000


def test_the_stages_follow_one_another(telemetry: dict[str, Any]) -> None:
    follows = followers(telemetry)
    assert "order_and_aggregate" in follows["plan"]
    assert follows["order_and_aggregate"] == {"audit"}
    assert "approval" in follows["audit"]
    assert follows["approval"] == {"publish"}
    assert follows["publish"] == {"report", "record"}
    assert tasks(telemetry)["record"]["trigger_rule"] == "one_failed", "it is skipped if all is well"


def test_the_tasks_are_the_stages_of_a_run_in_their_order(telemetry: dict[str, Any]) -> None:
    follows = followers(telemetry)
    assert sorted(follows) == sorted([*Stage, "record"])
    assert all(later in follows[earlier] for earlier, later in pairwise(Stage))


def test_an_update_finds_what_is_due_and_then_goes_through_the_stages(update: dict[str, Any]) -> None:
    follows = followers(update)
    assert follows["due"] == {"next_update", "plan", "record"}
    stages = ["plan", "order_and_aggregate", "audit", "publish", "report"]
    assert all(later in follows[earlier] for earlier, later in pairwise(stages))
    assert sorted(follows) == sorted([*stages, "due", "next_update", "record", "ask"])
    assert follows["publish"] == {"report", "record"}
    assert tasks(update)["record"]["trigger_rule"] == "none_skipped", "it also writes down what failed"


def test_history_does_not_take_the_slot_of_the_updates(telemetry: dict[str, Any], update: dict[str, Any]) -> None:
    assert [tasks(dag)["order_and_aggregate"]["pool"] for dag in (telemetry, update)] == ["history", "spark"]


def test_a_run_without_spark_has_a_pool_of_its_own_and_needs_no_connection(parse: Any, tmp_path: Path) -> None:
    task = tasks(changed(parse, tmp_path / "dags", action=".update", engine="processes"))["order_and_aggregate"]
    assert (task["pool"], task["task_type"]) == ("processes", "ProcessesRun")
    assert "conn_id" not in task


def test_airflows_backfill_has_data_intervals_of_one_slice(telemetry: dict[str, Any]) -> None:
    assert telemetry["timetable"] == {
        "__type": "recapture_airflow.slice_schedule.SliceTimetable",
        "__var": {"hours": 1},
    }


def test_updates_run_every_ten_minutes_or_as_the_pipeline_says(
    parse: Any, update: dict[str, Any], tmp_path: Path
) -> None:
    other = changed(parse, tmp_path / "dags", action=".update", schedule={"every_minutes": 5})
    assert [dag["timetable"]["__var"]["expression"] for dag in (update, other)] == ["*/10 * * * *", "*/5 * * * *"]


@pytest.mark.parametrize("value", [None, "2026-03-01T06:00:00Z", "2026-03-01T06:00:00.000Z", "2026-03-01T06:00+00:00"])
@pytest.mark.parametrize("name", ["from", "to"])
def test_the_form_accepts_nothing_or_a_whole_hour(telemetry: dict[str, Any], name: str, value: str | None) -> None:
    jsonschema.validate(value, schema(telemetry, name))


@pytest.mark.parametrize("value", ["tomorrow", "2026-03-01", "2026-03-01T06:30:00Z", "2026-03-01T06:00:00", 6])
@pytest.mark.parametrize("name", ["from", "to"])
def test_the_form_refuses_a_value_that_is_not_a_whole_hour(telemetry: dict[str, Any], name: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema(telemetry, name))


def schema(dag: dict[str, Any], name: str) -> dict[str, Any]:
    described: dict[str, Any] = plain(dict(dag["params"])[name]["schema"])
    return described


def plain(value: Any) -> Any:
    """Return a value without the marks of Airflow's serialization."""
    if isinstance(value, dict):
        return plain(value["__var"]) if "__var" in value else {key: plain(item) for key, item in value.items()}
    return value


def test_the_form_explains_its_fields_and_what_a_run_without_them_does(telemetry: dict[str, Any]) -> None:
    for name in ("from", "to"):
        assert schema(telemetry, name)["title"]
        description = dict(telemetry["params"])[name]["description"]
        assert "whole hour" in description
        assert "Empty: the run computes the slice of its data interval" in description


def test_the_fields_of_the_form_are_in_the_section_that_is_open(telemetry: dict[str, Any]) -> None:
    assert [schema(telemetry, name).get("section") for name in ("from", "to")] == [None, None]


def test_the_form_has_the_parameters_of_the_suites_with_their_usual_values(parse: Any, tmp_path: Path) -> None:
    parameters = {"max_late": 0.05, "season": "winter"}
    dag = changed(parse, tmp_path / "dags", quality={"suite": "suite.json", "parameters": parameters})
    field = schema(dag, "parameters")
    jsonschema.validate({"max_late": 0.2, "season": "summer"}, field)
    for wrong in ({"max_late": "much"}, {"min_late": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, field)
    assert plain(dict(dag["params"])["parameters"]["default"]) == parameters


def test_a_pipeline_without_parameters_has_no_field_for_them(telemetry: dict[str, Any]) -> None:
    assert [name for name, _ in telemetry["params"]] == ["from", "to", "at", "accept_loss", "stage"]


def test_a_rollback_needs_a_range(parsed: dict[str, Any]) -> None:
    rollback = next(dag for dag in parsed["dags"] if dag["dag_id"] == "telemetry.rollback")
    for name in ("from", "to"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(None, schema(rollback, name))


def test_every_output_of_a_pipeline_is_an_asset(parse: Any, tmp_path: Path) -> None:
    select = "SELECT COUNT(*) AS n INTO {} FROM telemetry GROUP BY TumblingWindow(minute, 5)"
    output = [{"alias": alias, "table": str(tmp_path / alias)} for alias in ("hot", "cold")]
    sections = {**yaml.safe_load(TELEMETRY), "name": "two", "output": output}
    del sections["quality"]
    sections["job"]["query"] = "\n\n".join(select.format(alias) for alias in ("hot", "cold"))
    parsed = parsed_with(parse, tmp_path / "dags", two=yaml.safe_dump(sections))
    assert parsed["errors"] == {}
    assets = {
        dag["dag_id"]: [
            (outlet["__var"]["name"], outlet["__var"]["uri"])
            for name in ("publish", "rollback")
            for outlet in tasks(dag).get(name, {}).get("outlets", ())
        ]
        for dag in parsed["dags"]
    }
    assert assets["telemetry"] == [("telemetry", "https://account.blob.core.windows.net/curated/telemetry")]
    assert [name for name, _ in assets["two"]] == ["two.hot", "two.cold"]
    assert assets["two"] == assets["two.rollback"]


def test_the_description_and_the_tags_of_a_dag_name_every_input(parse: Any, tmp_path: Path) -> None:
    sections = yaml.safe_load(TELEMETRY)
    alarms = {"alias": "alarms", "format": "Json", "container": str(tmp_path), "path": "alarms/{date}"}
    query = "SELECT id INTO aggregates FROM telemetry UNION SELECT id FROM alarms"
    two: dict[str, Any] = {
        "input": [sections["input"], alarms],
        "job": {**sections["job"], "query": query},
        "quality": None,
    }
    dag = changed(parse, tmp_path / "dags", "two", **two)
    assert dag["description"] == "contoso/telemetry, alarms/{date} to aggregates"
    assert sorted(dag["tags"]) == ["Json", "contoso", "recapture", "telemetry"]


def test_a_broken_pipeline_file_is_named_with_its_line_and_the_others_load(parse: Any, tmp_path: Path) -> None:
    parsed = parsed_with(parse, tmp_path / "dags", broken="name: broken\ninput: [\n")
    assert ids(parsed) == TELEMETRY_DAGS
    assert list(parsed["errors"]) == ["pipelines/broken.yaml"]
    last = parsed["errors"]["pipelines/broken.yaml"].splitlines()[-1]
    assert last.startswith("recapture_airflow.broken_pipeline.PipelineFileError: ")
    assert "broken.yaml:3: not YAML" in last


def test_a_pipeline_file_that_takes_too_long_is_named_and_the_others_load(parse: Any, tmp_path: Path) -> None:
    aggregates = ", ".join(f"MAX(a{number}) AS b{number}" for number in range(11_000))
    slow = TELEMETRY.replace("name: telemetry", "name: slow").replace("COUNT(*) AS events", aggregates)
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    parsed = parsed_with(parse, tmp_path / "dags", slow=slow, laughs=f"a0: &a0 [x, x]\n{laughs}")
    assert ids(parsed) == TELEMETRY_DAGS
    slow, laughs = (parsed["errors"][f"pipelines/{name}.yaml"] for name in ("slow", "laughs"))
    assert "slow.yaml: the pipeline file was not loaded within 5 s: simplify its query" in slow
    assert "laughs.yaml:5: aliases stand for more than 10,000 values: use fewer" in laughs


def test_two_files_with_one_name_are_refused(parse: Any, tmp_path: Path) -> None:
    parsed = parsed_with(parse, tmp_path / "dags", twin=TELEMETRY)
    assert ids(parsed) == TELEMETRY_DAGS
    assert "twin.yaml: the pipeline in telemetry.yaml is named telemetry too" in parsed["errors"]["pipelines/twin.yaml"]
