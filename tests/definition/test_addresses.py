"""Variables, addresses, folders and suites in a pipeline file."""

from pathlib import Path

import pytest

from recapture.definition.pipeline import load
from recapture.formats.event_hubs import CaptureInput
from tests.definition.pipeline_files import EXAMPLE, change, complaint, line_of, suite_path

# The environment


def test_a_name_in_braces_is_an_environment_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAPTURE_TEST_ACCOUNT", "lake")
    monkeypatch.setenv("RECAPTURE_TEST_INTERVAL", "600")
    change(file, "ACCOUNT.blob", "${RECAPTURE_TEST_ACCOUNT}.blob")
    change(file, "seconds: 300", "seconds: ${RECAPTURE_TEST_INTERVAL}")
    pipeline = load(file)
    assert pipeline.inputs[0].container == "https://lake.blob.core.windows.net/capture"
    assert isinstance(pipeline.inputs[0], CaptureInput)
    assert pipeline.inputs[0].capture_interval_seconds == 600


def test_a_variable_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECAPTURE_TEST_ACCOUNT", raising=False)
    change(file, "namespace: contoso", "namespace: a-${RECAPTURE_TEST_ACCOUNT}")
    assert complaint(file) == (
        line_of("namespace: contoso"),
        "input.namespace: the environment variable RECAPTURE_TEST_ACCOUNT is not set: set it",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: telemetry", "name: ${RECAPTURE_TEST_SECRET}"),
        ("seconds: 300", "seconds: ${RECAPTURE_TEST_SECRET}"),
        ("Policy: Adjust", "Policy: ${RECAPTURE_TEST_SECRET}"),
        ("{Namespace}/{EventHub}", "${RECAPTURE_TEST_SECRET}{"),
        ("windows.net/capture", "windows.net/capture?sig=${RECAPTURE_TEST_SECRET}"),
        ("https://ACCOUNT", "https://me:${RECAPTURE_TEST_SECRET}@ACCOUNT"),
        ("https://ACCOUNT", "ftp://${RECAPTURE_TEST_SECRET}"),
        ("windows.net/capture", "windows.net/${RECAPTURE_TEST_SECRET}"),
    ],
)
def test_the_value_of_a_variable_is_never_in_a_message(
    file: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECAPTURE_TEST_SECRET", "HUNTER2+/x==")
    change(file, old, new)
    line, message = complaint(file)
    assert line == line_of(old)
    assert "HUNTER2" not in message.upper()


# Urls and folders


@pytest.mark.parametrize(
    "url",
    [
        "https://ACCOUNT.blob.core.windows.net",
        "https:/ACCOUNT.blob.core.windows.net/capture",
        "http://ACCOUNT.blob.core.windows.net/capture",
        "https://ACCOUNT.blob.core.windows.net/UPPER",
        "s3://bucket/capture",
        "file://capture",
    ],
)
@pytest.mark.parametrize(("place", "old"), [("input.container", "capture "), ("output.table", "curated/telemetry ")])
def test_an_invalid_url_is_reported(file: Path, url: str, place: str, old: str) -> None:
    change(file, f"https://ACCOUNT.blob.core.windows.net/{old}", f"{url} ")
    line, message = complaint(file)
    assert line == line_of(f"windows.net/{old}")
    assert message.startswith(f"{place}: ")


CONTAINER = "  container: https://ACCOUNT.blob.core.windows.net/capture"


def test_an_archive_may_be_in_several_containers(file: Path, tmp_path: Path) -> None:
    change(file, CONTAINER, "  container: [https://OLD.blob.core.windows.net/capture, ../moved]  #")
    container = load(file).inputs[0].container
    assert container == ("https://OLD.blob.core.windows.net/capture", f"{tmp_path.as_uri()}/moved")
    change(file, ", ../moved]", "]")
    assert load(file).inputs[0].container == "https://OLD.blob.core.windows.net/capture", "as without a list"


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ("[]", "input.container: write an address, or a list of addresses"),
        ("5", "input.container: write an address, or a list of addresses (5 given)"),
        ("[../a, 5]", "input.container: write an address in each line of the list"),
        ("[../a, s3://bucket]", "input.container: s3://bucket: not a container url"),
        ("[../a, ../a/]", "input.container: two of these addresses overlap: remove one"),
        (
            "[https://acc.blob.core.windows.net/capture, abfss://capture@acc.dfs.core.windows.net/raw]",
            "input.container: two of these addresses overlap: remove one",
        ),
    ],
)
def test_a_list_of_containers_has_addresses_that_do_not_overlap(file: Path, container: str, message: str) -> None:
    change(file, CONTAINER, f"  container: {container}  #")
    assert complaint(file)[1].startswith(message)


def test_relative_folders_are_relative_to_the_file_from_wherever_it_is_loaded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(file, "https://ACCOUNT.blob.core.windows.net/capture", "../the capture")
    change(file, "https://ACCOUNT.blob.core.windows.net/curated/telemetry", "table")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder, given in (
        (elsewhere, file),
        (elsewhere, Path("../pipelines/telemetry.yaml")),
        (file.parent, Path("telemetry.yaml")),
    ):
        monkeypatch.chdir(folder)
        pipeline = load(given)
        assert pipeline.inputs[0].container == f"{tmp_path.as_uri()}/the%20capture"
        assert pipeline.outputs[0].table == f"{tmp_path.as_uri()}/pipelines/table"
        assert pipeline.file.is_absolute()


def test_a_suite_is_in_an_expectations_folder_above_the_file_or_next_to_it(file: Path, tmp_path: Path) -> None:
    assert suite_path(file) == file.parent / "expectations" / "telemetry.json"
    (tmp_path / "expectations").mkdir()
    assert suite_path(file) == tmp_path / "expectations" / "telemetry.json"
    change(file, "suite: telemetry", "suite: own/suite.json")
    assert suite_path(file) == file.parent / "own" / "suite.json"


def test_a_pipeline_may_have_no_suite(file: Path) -> None:
    file.write_text(EXAMPLE[: EXAMPLE.index("quality:")])
    assert suite_path(file) is None


def test_the_name_of_the_folder_does_not_matter(tmp_path: Path) -> None:
    strange = tmp_path / "a b:c" / "é.yml"
    strange.parent.mkdir()
    strange.write_text(EXAMPLE)
    assert load(strange).name == "telemetry"
