"""The drawing process draws the same pictures as this process, and its death is an error."""

import os
import signal
import time
from multiprocessing import active_children

import pytest

from recapture.errors import RunError
from recapture.pages.picture import svg
from recapture.tools.reports.drawing import drawing_process

BARS = {
    "data": {"values": [{"name": "<0>", "events": 3}, {"name": "1", "events": 4}]},
    "mark": "bar",
    "encoding": {"x": {"field": "events", "type": "quantitative"}, "y": {"field": "name"}},
}


def test_the_pictures_are_the_same_and_the_process_ends_with_the_context() -> None:
    others = set(active_children())
    with drawing_process() as drawing:
        drawing.load()
        assert drawing.svg(BARS, "two bars").__html__() == svg(BARS, "two bars")
    assert set(active_children()) == others


def test_a_picture_that_cannot_be_drawn_is_the_same_error() -> None:
    with drawing_process() as drawing, pytest.raises(RunError, match=r"cannot be drawn .* nothing"):
        drawing.svg({"mark": 7}, "nothing").__html__()


def test_a_process_that_was_killed_is_an_error() -> None:
    with drawing_process() as drawing:
        others = set(active_children())
        drawing.load()
        (child,) = set(active_children()) - others
        os.kill(child.pid or 0, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(RunError, match="the process that draws pictures ended suddenly"):
                drawing.svg(BARS, "two bars").__html__()


def test_a_page_is_made_while_its_pictures_are_drawn() -> None:
    with drawing_process() as drawing:
        started = time.monotonic()
        drawn = drawing.svg(BARS, "two bars")  # V8 is loaded first, which takes half a second
        asked = time.monotonic()
        drawn.__html__()
        assert asked - started < time.monotonic() - asked
