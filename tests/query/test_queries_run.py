"""A query that compiles also runs: every supported query of docs/query-language.md, and every everyday query."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from sqlglot.tokenizer_core import TokenType

from recapture.formats.event_hubs import CaptureInput
from recapture.model import InputMetadata
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.query.parse.asaql import parse
from tests.query import small_world
from tests.query.test_common_queries import QUERIES
from tests.query.test_documented_language import EXAMPLES, OTHER_INPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Inputs = Mapping[str, InputMetadata | None]

DOCUMENTED = [
    (text, {"telemetry": CaptureInput.metadata, **OTHER_INPUTS.get(section, {})}, ["out"])
    for section, text, refusal in EXAMPLES
    if refusal is None
]
EVERYDAY = [
    (text, {"tolls": CaptureInput.metadata}, [name for name in ("alerts", "archive") if f"INTO {name}" in text])
    for text in QUERIES.values()
]
ALL = [*DOCUMENTED, *EVERYDAY]


def compiled(text: str, inputs: Inputs, outputs: list[str]) -> CompiledQuery:
    return compile_query(text, inputs=inputs, output_aliases=outputs)


def respelt(text: str) -> str:
    """Return a query in which every other word is in capitals, and all others are in small letters."""
    letters, capitals = list(text), False
    for token in parse(text).tokens:
        if token.token_type is not TokenType.STRING:
            word = slice(token.start, token.end + 1)
            letters[word] = text[word].upper() if capitals else text[word].lower()
            capitals = not capitals
    return "".join(letters)


@pytest.mark.parametrize(("text", "inputs", "outputs"), ALL)
def test_a_query_that_compiles_runs(spark: "SparkSession", text: str, inputs: Inputs, outputs: list[str]) -> None:
    query = compiled(text, inputs, outputs)
    tables = small_world.run(spark, query)
    assert {
        alias: [name for name in table.column_names if name != "_unanchored"] for alias, table in tables.items()
    } == {output.alias: [*(column.name for column in output.columns), "slice_start"] for output in query.outputs}


@pytest.mark.parametrize(("text", "inputs", "outputs"), ALL)
def test_names_may_change_their_letter_case_within_a_query(
    spark: "SparkSession", text: str, inputs: Inputs, outputs: list[str]
) -> None:
    query = compiled(respelt(text), inputs, outputs)
    small_world.create_views(spark, query)
    for output in query.outputs:
        names = spark.sql(output.sql).columns
        assert len({name.lower() for name in names}) == len(names)
