"""Pictures that a process of its own draws are those that this one draws, and its end is an error."""

import os
from multiprocessing import active_children

import pytest

from recapture.errors import RunError
from recapture.pages.picture import svg
from recapture.reports.drawing import drawing

BARS = {
    "data": {"values": [{"name": "<0>", "events": 3}, {"name": "1", "events": 4}]},
    "mark": "bar",
    "encoding": {"x": {"field": "events", "type": "quantitative"}, "y": {"field": "name"}},
}


def test_the_process_draws_what_this_one_draws_and_ends_with_the_context() -> None:
    others = set(active_children())
    with drawing() as process:
        process.load()
        assert process.svg(BARS, "two bars") == svg(BARS, "two bars")
    assert set(active_children()) == others


def test_a_picture_that_cannot_be_drawn_is_the_same_error() -> None:
    with drawing() as process, pytest.raises(RunError, match=r"cannot be drawn .* nothing"):
        process.svg({"mark": 7}, "nothing")


def test_a_process_that_was_killed_is_an_error() -> None:
    with drawing() as process:
        others = set(active_children())
        process.load()
        (child,) = set(active_children()) - others
        os.kill(child.pid or 0, 9)
        with pytest.raises(RunError, match="the process that draws pictures ended suddenly"):
            process.svg(BARS, "two bars")
