"""The page of an advice: self-contained, escaped, and with the figures of the JSON."""

import re
from pathlib import Path

from recapture.tools.advise.advice import Advice
from recapture.tools.advise.page import page
from tests.tools.advise.runs import PLAIN, advised, fleet, input_section
from tests.worlds import World

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


def advice(home: Path, fast: str = "fast") -> Advice:
    """Return the advice on five devices, one of which has a fast clock."""
    world = World(home)
    fleet(world, {f"device-{number}": -0.2 for number in range(4)} | {fast: 121})
    return advised(world.define(PLAIN))


def test_the_page_has_the_settings_the_curves_and_the_clocks(tmp_path: Path) -> None:
    one = advice(tmp_path)
    html = page(one).decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))
    (best,) = [entry for entry in one.summary["inputs"][0]["keys"][0]["smallest"] if entry["keep"] == 1]
    assert (best["late_seconds"], best["out_of_order_seconds"], best["complete_after_seconds"]) == (420, 90, 420)
    assert "The smallest setting that keeps all of them: 7 min late, 1 min 30 s out of order." in text
    assert "complete at E + 7 min" in text
    assert "fast 2 min ahead 55" in text
    labels = re.findall(r'<svg role="img" aria-label="([^"]*)"', html)
    assert len(labels) == 2
    assert labels[0].startswith("Share of unchanged events by late tolerance, with an out-of-order ")
    assert "OVER deviceId" in labels[1]
    for warning in one.warnings:
        assert warning[1:] in text


def test_a_key_that_keeps_more_than_the_query_s_is_named_at_the_top(tmp_path: Path) -> None:
    world = World(tmp_path)
    fleet(world, {f"device-{number}": -0.2 for number in range(4)} | {"fast": 900}, interval=15)
    inputs = input_section(capture_interval_seconds=900)
    html = page(advised(world.define(PLAIN, inputs=inputs, eventsLateArrivalMaxDelayInSeconds=900))).decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html[: html.index('id="findings"')]))
    assert "No setting without OVER keeps 99% of them." in text
    assert "With OVER deviceId, 20 min late, 0 s out of order keeps all of them." in text


def test_the_shares_of_the_page_are_those_of_the_counts(tmp_path: Path) -> None:
    one = advice(tmp_path)
    html = page(one).decode()
    own = next(setting for setting in one.summary["inputs"][0]["keys"][0]["settings"] if setting["late_seconds"] == 600)
    assert f'<td class="number">{own["on_time"]}</td>' in html
    assert own["unchanged_share"] == own["on_time"] / (own["on_time"] + own["out_of_order_adjusted"])
    assert f"{int(10_000 * own['unchanged_share']) / 100:.2f}% of the events are unchanged" in html


def test_names_with_markup_do_nothing_and_nothing_is_loaded(tmp_path: Path) -> None:
    html = page(advice(tmp_path, HOSTILE)).decode()
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
    assert "49" not in re.findall(r"alert\(1\)[^<]*", html)[0]
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#|data:)', html) == []
    assert "default-src 'none'" in html
