"""Files of another format are refused: manifests, run files and publications."""

import json
import re
from pathlib import Path

import pytest

from recapture.errors import RunError
from recapture.process.versions import FORMAT, MANIFEST_FORMAT, PUBLICATIONS_FORMAT, require_format
from recapture.run.plan import load_manifest, plan_run
from recapture.run_files.contents import AUDIT
from recapture.run_files.files import RunFiles
from recapture.storage import open_container
from recapture.table import publications
from recapture.table.publications import Publications
from tests.paths import ROOT
from tests.table.publishing import NINE, Place
from tests.worlds import TEN as START
from tests.worlds import World, at, body

CHANGELOG = ROOT / "CHANGELOG.md"


def newer(known: int) -> str:
    return f"has format {known + 1}, and this version of Recapture reads {known}: use a newer version"


def older(known: int) -> str:
    return f"has a format older than {known}, which this version reads: plan the range again"


NEWER, OLDER = newer(FORMAT), older(FORMAT)


@pytest.mark.parametrize(("number", "message"), [(FORMAT + 1, NEWER), (FORMAT - 1, OLDER), (None, OLDER), ("1", OLDER)])
def test_another_format_is_refused_with_what_to_do(number: object, message: str) -> None:
    with pytest.raises(RunError) as refused:
        require_format(number, FORMAT, "the file")
    assert str(refused.value) == f"the file {message}"


@pytest.mark.parametrize(
    ("number", "message"), [(MANIFEST_FORMAT + 1, newer(MANIFEST_FORMAT)), (None, older(MANIFEST_FORMAT))]
)
def test_a_manifest_of_another_format_is_refused(tmp_path: Path, number: object, message: str) -> None:
    world = World(tmp_path)
    world.put("0", at(10), [body("a", at(9))])
    run = plan_run(world.define(), START, at(60))
    path = world.table / "_recapture" / run.id / "manifest.json"
    content = json.loads(path.read_bytes()) | {"format": number}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    with pytest.raises(RunError, match=message):
        load_manifest(world.define(), str(path))


@pytest.mark.parametrize(
    ("document", "message"),
    [({"format": FORMAT + 1, "content": {}}, NEWER), ({"verdict": "passed"}, OLDER), ([], OLDER)],
)
def test_a_run_file_of_another_format_is_refused(tmp_path: Path, document: object, message: str) -> None:
    files = RunFiles(open_container(tmp_path.as_uri()), "run")
    files.container.write(files.name(AUDIT.name), json.dumps(document).encode())
    with pytest.raises(RunError, match=rf"audit\.json of run run {message}"):
        files.read(AUDIT)


def test_a_publication_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path.as_uri())
    with monkeypatch.context() as newer:
        newer.setattr(publications, "PUBLICATIONS_FORMAT", PUBLICATIONS_FORMAT + 1)
        place.publish("first")
    newest = f"has format {PUBLICATIONS_FORMAT + 1}, and this version of Recapture reads {PUBLICATIONS_FORMAT}"
    with pytest.raises(RunError, match=newest):
        Publications(place.tables.publications).entries([NINE])


def test_the_changelog_names_the_format_of_manifests_and_run_files() -> None:
    stated = re.findall(r"Manifests have format (\d+), other run files format (\d+)", CHANGELOG.read_text("utf-8"))
    assert stated[0] == (str(MANIFEST_FORMAT), str(FORMAT)), "the newest statement comes first"
