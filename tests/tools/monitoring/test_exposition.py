"""Samples in Prometheus' text format."""

import re

from recapture.tools.monitoring.exposition import Gauge, Sample, text_of

ROWS = Gauge("rows", "Rows.")
HOURS = Gauge("hours", "Hours.")
LINE = re.compile(r'[a-z_]+\{([a-z]+="([^"\\\n]|\\[\\n"])*"(,|(?=\})))*\} -?[0-9.]+(e[+-]?[0-9]+)?')


def test_the_samples_of_a_gauge_follow_its_help() -> None:
    samples = [Sample(ROWS, {"output": "a"}, 1), Sample(HOURS, {}, 1.5), Sample(ROWS, {"output": "b", "x": ""}, 10**16)]
    assert text_of(samples).splitlines() == [
        "# HELP rows Rows.",
        "# TYPE rows gauge",
        'rows{output="a"} 1',
        'rows{output="b",x=""} 10000000000000000',
        "# HELP hours Hours.",
        "# TYPE hours gauge",
        "hours{} 1.5",
    ]


def test_a_label_may_hold_anything() -> None:
    line = text_of([Sample(ROWS, {"output": 'a"b\\c\nd é'}, -1.5e-9)]).splitlines()[-1]
    assert line == 'rows{output="a\\"b\\\\c\\nd é"} -1.5e-09'
    assert LINE.fullmatch(line)


def test_no_samples_are_no_text() -> None:
    assert text_of([]) == ""
