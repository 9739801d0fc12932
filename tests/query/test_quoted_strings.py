"""Strings in double quotes where an event may have a field of this name; `tests/cases` has the rows of others."""

import re

import pytest

from recapture.errors import RunError
from tests.query.small_stream import at, rows

TEXT = 'SELECT id INTO out FROM telemetry WHERE state = "WA"'


def test_an_event_with_a_field_of_the_name_in_double_quotes_stops_the_run() -> None:
    reason = "\"WA\" is a string here, but an event has a field of this name: write '…' for a string, […] for a field"
    with pytest.raises(RunError, match=re.escape(f"query, line 1, column 49: {reason}")):
        rows(TEXT, [at(1, id="a", state="WA"), at(2, id="b", state="OR", WA="x")])


def test_a_field_that_is_null_in_the_event_does_not_stop_the_run() -> None:
    assert rows(TEXT, [at(1, id="a", state="WA", WA=None)]) == [[{"id": "a"}]]
