"""The names in a query's text, without those in comments and string literals."""

from recapture.tools.asa_job.query_text import lines_calling, lines_into, lines_naming, outputs, sources
from tests.tools.asa_job.jobs import WIDE_QUERY


def test_the_outputs_are_the_names_after_into_without_repetition() -> None:
    assert outputs(WIDE_QUERY) == ["aggregates", "dashboard"]
    twice = "SELECT 1 INTO [my-out] FROM a; SELECT 2 into Other FROM a; SELECT 3 INTO [My-Out] FROM a"
    assert outputs(twice) == ["my-out", "Other"]
    assert lines_into(WIDE_QUERY, "DASHBOARD") == [14]


def test_a_query_without_into_writes_to_output() -> None:
    assert outputs("SELECT * FROM telemetry") == ["output"]


def test_inputs_are_read_by_from_and_join() -> None:
    assert sources(WIDE_QUERY) == ["telemetry", "regions", "joined", "alerts"]


def test_only_a_call_of_a_function_counts() -> None:
    assert lines_calling(WIDE_QUERY, "classify") == [3, 13]
    query = "SELECT classify, udf.[classify] (x),\nuda.total(x), my_classify(x), t.classify(x),\nCLASSIFY(x)"
    assert lines_calling(query, "classify") == [1, 3]
    assert lines_calling(query, "total") == [2]


def test_a_field_is_named_alone_or_after_a_dot() -> None:
    query = "SELECT t.Body, Body.x, Bodyguard,\n'Body' FROM t -- Body\nWHERE Body() > 1"
    assert lines_naming(query, "body") == [1]


def test_an_unclosed_comment_or_literal_reaches_to_the_end() -> None:
    assert outputs("SELECT 1 INTO a FROM b /* INTO c") == ["a"]
    assert outputs("SELECT 'INTO c") == ["output"]
