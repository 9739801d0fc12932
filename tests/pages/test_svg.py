"""Charts as SVG: their labels, colours, ids and sizes."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.pages.svg import INK, Chart, Text, clipped, element, number, path, shortened
from tests.draws import slow
from tests.pages.drawn import NAMES, drawn

PLACES = st.floats(-500, 500)


def test_a_chart_has_a_label_a_role_and_the_colours_of_the_page() -> None:
    chart = Chart(100, 20, [Text("device", 0, 12, color=INK)]).svg('bars of "device"')
    assert chart.startswith('<svg role="img" aria-label="bars of &quot;device&quot;"')
    assert 'fill="var(--ink)">device<' in chart


@slow(60)
@given(NAMES, st.tuples(PLACES, PLACES), st.sampled_from(["start", "middle", "end"]), st.floats(-180, 180))
def test_every_text_is_inside_its_chart_wherever_it_is_and_however_it_is_turned(
    content: str, place: tuple[float, float], anchor: str, angle: float
) -> None:
    texts = [Text(content, *place, anchor, angle=angle), Text("middle", 50, 50)]  # type: ignore[arg-type]
    chart = Chart(2_000, 1_000, texts)
    assert [text.content for text in drawn(chart).texts] == [content, "middle"]


def test_a_chart_is_as_large_as_its_plot_and_its_texts() -> None:
    plain, labelled = (drawn(Chart(200, 100, texts)) for texts in ([], [Text("label", -8, 50, "end")]))
    assert (plain.width, plain.height) == (211, 111)
    assert plain.width + 20 < labelled.width < plain.width + 60
    assert labelled.height == plain.height


def test_what_is_clipped_names_its_own_clip_path_and_other_content_has_another() -> None:
    lines = [element("path", d=path([(0, 0), (x, 200)])) for x in (10, 20)]
    ids = []
    for line in lines:
        root = ElementTree.fromstring(f"<svg>{clipped(line, 100, 50)}</svg>")
        (identifier,) = [clip.attrib["id"] for clip in root.iter("clipPath")]
        assert [group.attrib["clip-path"] for group in root.iter("g")] == [f"url(#{identifier})"]
        ids.append(identifier)
    assert ids[0] != ids[1]


def test_an_element_writes_numbers_short_and_escapes_strings() -> None:
    assert element("rect", x=-0.001, stroke_width=1.4999, fill='"<') == (
        '<rect x="0" stroke-width="1.5" fill="&quot;&lt;"/>'
    )


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (12.3456, "12.35"), (-0.001, "0"), (1499.5, "1499.5"), (5, "5")])
def test_a_number_has_two_decimals_at_most(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-9_999, 9_999))
def test_a_number_is_never_written_with_an_exponent(value: float) -> None:
    assert re.fullmatch(r"-?\d+(\.\d+)?", number(value))
    assert abs(float(number(value)) - value) <= 0.06


@given(NAMES)
def test_a_shortened_name_is_the_name_or_its_beginning(name: str) -> None:
    short = shortened(name)
    assert short == name if len(name) <= 24 else len(short) == 24 and name.startswith(short[:-1])
