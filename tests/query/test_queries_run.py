"""A query that compiles also runs, from an archive to staged rows: every query of the pages, and every everyday query.

Refused queries are those of docs/query-language.md, which has their messages (`test_documented_language`).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot.tokenizer_core import TokenType

from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers
from recapture.execute.spark.functions import register
from recapture.execute.stage import InputTasks, stage_rows
from recapture.execute.tasks import run_task, write_slices
from recapture.formats.event_hubs import CaptureInput
from recapture.model import published_schema
from recapture.ordering import order, panes
from recapture.query.compile import compile_query
from recapture.query.lower.spark_text import quoted_name
from recapture.query.model import CompiledQuery
from recapture.query.parse.asaql import parse
from recapture.run.plan import plan_run
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.planned import PlannedRun
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.verdicts import PROCESSED
from tests.paths import ROOT
from tests.query import small_world, views
from tests.query.nothing import evaluate_over_nothing
from tests.query.small_world import Inputs
from tests.query.test_common_queries import QUERIES
from tests.query.test_documented_language import EXAMPLES, OTHER_INPUTS
from tests.worlds import TEN, World, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
ALL = [*DOCUMENTED, *EVERYDAY, *queries_of_pages()]


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


def in_spark(spark: "SparkSession", run: PlannedRun, inputs: list[InputTasks]) -> Iterator[StagedSlice]:
    """Do what a run does with Spark, but run its tasks and write its files in this process, which starts no workers."""
    from recapture.execute.spark.references import create_view

    query = run.pipeline.query
    register(spark, query)
    for reference in query.references:
        section = run.pipeline.reference(reference.alias)
        rows = run.manifest.reference(reference.alias), reference, section.reader(reference.body_columns)
        create_view(spark, *rows, open_container(section.container))
    panes_by_view: dict[str, pa.Table] = {}
    for read in inputs:
        compiled = read.context.input
        schema = panes.schema(compiled.aggregations) if compiled.aggregations else order.schema(compiled)
        batches = [batch for task in read.tasks for batch in run_task(read.context, task)]
        given = pa.concat_tables([schema.empty_table(), pa.Table.from_batches(batches, schema)]).combine_chunks()
        if compiled.aggregations:
            panes_by_view[compiled.view] = given
        else:
            spark.createDataFrame(given).coalesce(1).createOrReplaceTempView(f"`{compiled.view}`")
    views.create_groups_views(spark, query, panes_by_view)
    digests = {run_slice.slice.start: run_slice.digest for run_slice in run.manifest.slices}
    for output in run.pipeline.outputs:
        selected = run.pipeline.compiled(output)
        sorted_by = ["slice_start", *(quoted_name(column.name) for column in selected.columns)]
        result = spark.sql(selected.sql).sort(*sorted_by).toArrow().to_batches()
        for file in write_slices(output.table, published_schema(selected.columns), digests, result):
            (row,) = file.to_pylist()
            yield StagedSlice(output.alias, ticks.to_text(row.pop("slice_start")), **row)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case[0])
def test_a_query_that_compiles_runs_without_spark(processes: Workers, tmp_path: Path, case: Case) -> None:
    run = planned(tmp_path, case)
    require_rows(run, local.compute(processes, run, tmp_path))


@pytest.mark.parametrize("case", EVERYDAY, ids=lambda case: case[0])
def test_both_engines_stage_the_same_files(
    spark: "SparkSession", processes: Workers, tmp_path: Path, case: Case
) -> None:
    run = planned(tmp_path, case)
    ours = local.compute(processes, run, tmp_path)
    theirs = stage_rows(run, 1, lambda inputs: in_spark(spark, run, inputs))
    require_rows(run, theirs)
    assert set(ours.staged) == set(theirs.staged)


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
