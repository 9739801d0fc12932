"""Two lines in a DAG file turn pipeline files into DAGs, as Airflow's DAG processor sees them."""

import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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


@pytest.mark.parametrize(("lookup", "others"), [("", []), ("['two']", ["two"])], ids=["alone", "with another one"])
def test_a_task_makes_its_own_dag_and_those_that_the_file_looks_up(
    parse: Any, bundle: Path, lookup: str, others: list[str]
) -> None:
    context = "import os\nos.environ['_AIRFLOW_PARSING_CONTEXT_DAG_ID'] = 'one.check'"
    assert sorted(made_by(parse, bundle, f"{context}\nRecaptureDags(){lookup}")) == ["one.check", *others]


@pytest.fixture
def definitions(bundle: Path) -> Path:
    """A document with a list of the two pipelines. The folder has no pipeline files."""
    listed = []
    for path in sorted((bundle / "pipelines").iterdir()):
        sections = yaml.safe_load(path.read_text())
        sections["output"]["table"] = f"https://account.blob.core.windows.net/curated/{path.stem}"
        listed.append(sections)
        path.unlink()
    document = bundle / "definitions.yaml"
    document.write_text(yaml.safe_dump(listed, sort_keys=False))
    return document


@pytest.fixture
def address(definitions: Path) -> Iterator[str]:
    """The address of the document on a web server."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(definitions.parent))

        def log_message(self, *arguments: object) -> None:
            """Keep the requests out of the output of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{definitions.name}?signature=secret"
        server.shutdown()


def in_variable(document: Path, arguments: str = "") -> str:
    """Return the text of a DAG file for which Airflow has the document in a variable."""
    return (
        "import os\nfrom recapture_airflow import RecaptureDags\n"
        f"os.environ['AIRFLOW_VAR_DEFINITIONS'] = {document.read_text()!r}\n"
        f"RecaptureDags('variable://definitions'{arguments})\n"
    )


def test_definitions_in_a_variable_or_at_an_address_make_the_dags_of_files_with_the_same_arguments(
    parse: Any, bundle: Path, definitions: Path, address: str
) -> None:
    from_address = f"from recapture_airflow import RecaptureDags\nRecaptureDags({address!r}, tags=['ours'])\n"
    stored = []
    for text in (in_variable(definitions, ", tags=['ours']"), from_address):
        for _ in range(2):
            parsed = parsed_from(parse, bundle, text)
            assert parsed["errors"] == {}
            assert sorted(dag["dag_id"] for dag in parsed["dags"]) == [
                f"{name}{action}" for name in ("one", "two") for action in ACTIONS
            ]
            assert all("ours" in dag["tags"] for dag in parsed["dags"])
            stored.append(sorted((dag["dag_id"], str(dag["tasks"])) for dag in parsed["dags"]))
    assert stored[0] == stored[1], "a process that reads the same definitions makes no new version of a DAG"
    assert stored[2] == stored[3]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: two", "nome: two", "variable://definitions:{line}: nome: unknown key"),
        ("COUNT(*)", "COUNT(**)", "variable://definitions:{line}: job.query"),
        ("https://account.blob.core.windows.net/curated/two", "curated/two", "write an address"),
        ("name: two", "name: one", "is named one too: rename one"),
    ],
)
def test_a_bad_definition_is_one_import_error_with_its_line_and_the_others_load(
    parse: Any, bundle: Path, definitions: Path, old: str, new: str, message: str
) -> None:
    text = definitions.read_text()
    place = text.rindex(old)
    text = f"{text[:place]}{new}{text[place + len(old) :]}"
    definitions.write_text(text)
    line = text.count("\n", 0, text.rindex("query:" if "query" in message else new)) + 1
    parsed = parsed_from(parse, bundle, in_variable(definitions))
    assert sorted(dag["dag_id"] for dag in parsed["dags"]) == [f"one{action}" for action in ACTIONS]
    (error,) = parsed["errors"].values()
    assert message.format(line=line) in error
    assert "variable://definitions" in error


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
    dags = made_by(parse, bundle, "RecaptureDags(schedule='30 1 * * *')")
    assert dags["one.update"]["timetable"]["__var"]["expression"] == "30 1 * * *"
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
        ("'variable://none'", "variable://none: Airflow has no variable none: create it, or correct the name"),
        ("'http://127.0.0.1:1/a.yaml?sig=secret'", "http://127.0.0.1:1/a.yaml cannot be read ([Errno 111]"),
        ("'https://user:secret@127.0.0.1/a.yaml'", "without a user, a password or blanks"),
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
    assert "secret" not in error.splitlines()[-1]


def test_spark_runs_a_script_of_the_package(parse: Any, bundle: Path) -> None:
    application = Path(task(made_by(parse, bundle, "RecaptureDags()")["one"])["application"])
    assert application.parts[-3:] == ("recapture_airflow", "application", "backfill.py")
    assert application.read_bytes() == (ROOT / "spark_jobs" / "backfill.py").read_bytes()
