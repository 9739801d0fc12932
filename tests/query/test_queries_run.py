"""A query that compiles also runs, from an archive to staged rows: every query of the pages, and every everyday query.

Refused queries are those of docs/query-language.md, which has their messages (`test_documented_language`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlglot.tokenizer_core import TokenType

from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers
from recapture.formats.event_hubs import CaptureInput
from recapture.model import published_schema
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.query.parse.asaql import parse
from recapture.run.plan import plan_run
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.time_model.verdicts import PROCESSED
from tests.paths import ROOT
from tests.query import small_world
from tests.query.nothing import evaluate_over_nothing
from tests.query.small_world import Inputs
from tests.query.test_common_queries import QUERIES
from tests.query.test_documented_language import EXAMPLES, OTHER_INPUTS
from tests.worlds import TEN, World, at

Case = tuple[str, Inputs, list[str]]
"""A query, its inputs and its outputs."""

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("dags/pipelines/*.yaml"))]


def queries_of_pages() -> Iterator[Case]:
    """Yield the queries of the pipeline files that pages show. The walkthrough's is a file, which its own test runs."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        for block in blocks if page.suffix == ".md" else [text]:
            for match in re.finditer(r"^( *)query: \|\n((?:\1 +.*\n|\n)+)", block, re.MULTILINE):
                yield match[2], {"telemetry": CaptureInput.metadata}, re.findall(r"INTO (\w+)", match[2])


DOCUMENTED: list[Case] = [
    (text, {"telemetry": CaptureInput.metadata, **OTHER_INPUTS.get(section, {})}, ["out"])
    for section, text, refusal in EXAMPLES
    if refusal is None
]
EVERYDAY: list[Case] = [
    (text, {"tolls": CaptureInput.metadata}, [name for name in ("alerts", "archive") if f"INTO {name}" in text])
    for text in QUERIES.values()
]
WITHOUT_READER: Case = (
    "WITH unread AS (SELECT y FROM beta), gamma AS (SELECT x FROM alpha) SELECT x INTO out FROM gamma",
    {"alpha": CaptureInput.metadata, "beta": CaptureInput.metadata},
    ["out"],
)
"""A query with an input that no output needs."""
ALL = [*DOCUMENTED, *EVERYDAY, *queries_of_pages(), WITHOUT_READER]


def compiled(text: str, inputs: Inputs, outputs: list[str]) -> CompiledQuery:
    return compile_query(text, inputs=inputs, output_aliases=outputs)


def planned(folder: Path, case: Case) -> PlannedRun:
    return plan_run(small_world.define(World(folder), *case), TEN, at(120))


def require_rows(run: PlannedRun, computed: Computed) -> None:
    """Raise AssertionError unless all events counted, and each output has rows, with its columns and types."""
    for read in run.pipeline.query.inputs:
        counted = [row for row in computed.metrics if row.input == read.alias]
        assert sum(row.count(verdict.label) for row in counted for verdict in PROCESSED) == small_world.EVENTS
    for output in run.pipeline.outputs:
        query = run.pipeline.compiled(output)
        files = computed.staged_of(output.alias)
        assert sum(file.rows for file in files), f"no rows in {output.alias}"
        for file in files:
            schema = pq.read_schema(Path(output.table.removeprefix("file://")) / file.path)
            assert schema.equals(published_schema(query.columns))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case[0])
def test_a_query_that_compiles_runs_without_spark(processes: Workers, tmp_path: Path, case: Case) -> None:
    run = planned(tmp_path, case)
    require_rows(run, local.compute(processes, run, tmp_path))


def respelt(text: str) -> str:
    """Return a query in which every other word is in capitals, and all others are in small letters."""
    letters, capitals = list(text), False
    for token in parse(text).tokens:
        if token.token_type is not TokenType.STRING:
            word = slice(token.start, token.end + 1)
            letters[word] = text[word].upper() if capitals else text[word].lower()
            capitals = not capitals
    return "".join(letters)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case[0])
def test_names_may_change_their_letter_case_within_a_query(case: Case) -> None:
    text, inputs, outputs = case
    query = compiled(respelt(text), inputs, outputs)
    evaluate_over_nothing(query)
    for output in query.outputs:
        assert len({column.name.lower() for column in output.columns}) == len(output.columns)
