"""Text in front of the query in a pipeline file: the rest of the file stays as it is."""

from pathlib import Path

import pytest
import yaml

from recapture.definition.document import read
from recapture.definition.query_text import write_in_front
from recapture.errors import DefinitionError

TEXT = '-- it\'s "new": 5%\nCREATE TABLE telemetry (\n    x bigint\n);\n'
BLOCK = """\
# the pipeline
name: p   # its name
job:
    # the query
    query: |
        SELECT *   -- all

          INTO out FROM telemetry
    # after the query
    eventsLateArrivalMaxDelayInSeconds: 5
output: {alias: out}
"""


def written(folder: Path, before: str) -> str:
    """Return the file after TEXT was written in front of its query, and check its values."""
    file = folder / "p.yaml"
    file.write_bytes(before.encode())
    values = read(file).values
    query = values["job"]["query"]
    write_in_front(file, query, TEXT)
    values["job"]["query"] = TEXT + query
    after = file.read_bytes().decode()
    assert read(file).values == yaml.safe_load(after) == values
    return after


def test_a_block_gets_more_lines_and_every_other_line_stays(tmp_path: Path) -> None:
    after = written(tmp_path, BLOCK)
    added = ['-- it\'s "new": 5%', "CREATE TABLE telemetry (", "    x bigint", ");"]
    lines, first = BLOCK.splitlines(), 5
    expected = [*lines[:first], *(f"        {line}" for line in added), *lines[first:]]
    assert after.splitlines() == expected


@pytest.mark.parametrize(
    "query",
    [
        "|-\n    SELECT *",
        "|+\n    SELECT *\n\n",
        "| # a comment\n    SELECT *",
        "|\n\n\n    SELECT *",
        "SELECT * FROM telemetry   # a comment",
        "SELECT *\n    FROM telemetry",
        "'SELECT ''a'' AS x'",
        '"SELECT \\\n    *"',
        ">\n    SELECT *\n    FROM telemetry",
    ],
)
def test_a_query_in_any_style_keeps_its_text(tmp_path: Path, query: str) -> None:
    assert written(tmp_path, f"name: p\njob:\n  a: 1\n  query: {query}\n  b: 2  # b\n").endswith("\n  b: 2  # b\n")


def test_a_file_in_json_stays_json(tmp_path: Path) -> None:
    after = written(tmp_path, '{"name": "p", "job": {"query": "SELECT \\"a b\\"", "x": 1}}')
    assert after.startswith('{"name": "p", "job": {"query": "-- it\'s \\"new\\": 5%\\nCREATE TABLE')


def test_a_block_keeps_the_line_ends_of_windows(tmp_path: Path) -> None:
    after = written(tmp_path, BLOCK.replace("\n", "\r\n"))
    assert after.count("\r\n") == after.count("\n") > BLOCK.count("\n")


@pytest.mark.parametrize(
    "before",
    [
        "name: p\njob:\n  query: |2\n      SELECT *\n",
        "name: p\njob:\n  query: &q SELECT\n  other: *q\n",
        'name: p\njob:\n  query: "SELECT 1 \\x07"\n',
    ],
)
def test_a_form_that_cannot_be_edited_leaves_the_file_as_it_is(tmp_path: Path, before: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(before)
    with pytest.raises(DefinitionError, match=r"p.yaml:3: job.query: .* write it as a block, query: \|"):
        write_in_front(file, read(file).values["job"]["query"], TEXT)
    assert file.read_text() == before


def test_a_file_with_another_query_is_not_edited(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(BLOCK)
    with pytest.raises(DefinitionError, match="has changed"):
        write_in_front(file, "SELECT 1", TEXT)
    assert file.read_text() == BLOCK


def test_a_link_stays_a_link_and_no_temporary_file_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "p.yaml", tmp_path / "p.yaml"
    real.write_text(BLOCK)
    link.symlink_to(real)
    write_in_front(link, read(link).values["job"]["query"], TEXT)
    assert link.is_symlink()
    assert "CREATE TABLE" in real.read_text()
    assert [path.name for path in real.parent.iterdir()] == ["p.yaml"]


def test_a_process_that_is_killed_while_it_writes_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(BLOCK)

    def killed(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        write_in_front(file, read(file).values["job"]["query"], TEXT)
    assert file.read_text() == BLOCK
