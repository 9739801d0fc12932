"""The page of a row in a browser, with the form to ask for another one."""

from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from recapture.tools.events.page import Form, explain_page
from tests.browser import serious_findings

EVENT = {
    "input": "telemetry",
    "partition": "3",
    "sequence_number": 551,
    "offset": "123346",
    "blob": "contoso/telemetry/3/2026/03/01/10/45/00.avro",
    "arrival": "2026-03-01T10:50:08Z",
    "time": "2026-03-01T10:30:55.605232Z",
    "system_timestamp": "2026-03-01T10:40:08Z",
    "verdict": "late_adjusted",
    "reason": "it arrived 19 min after its time, more than the late tolerance of 10 min",
    "body": '{"deviceId":"device-024","note":"<script>alert(1)</script>","text":"' + "x" * 200 + '"}',
}
SUMMARY: dict[str, Any] = {
    "pipeline": "telemetry",
    "output": "aggregates",
    "slice": {"start": "2026-03-01T10:00:00Z", "published_by": None, "run": None},
    "system_timestamp": "2026-03-01T10:45:00Z",
    "window": {"start": "2026-03-01T10:40:00Z", "end": "2026-03-01T10:45:00Z"},
    "row": {"windowEnd": "2026-03-01T10:45:00Z", "deviceId": "device-024", "events": 1, "place": None},
    "why": None,
    "events": [{**EVENT, "role": "deciding"}, {**EVENT, "role": "considered"}],
    "references": [
        {
            "reference": "places",
            "blob": "places.json",
            "row": 2,
            "valid_from": "2026-03-01T10:00:00Z",
            "columns": {"k": 1},
        }
    ],
    "absences": [{"text": "LEFT JOIN found no row of other from 2026-03-01T10:40:00Z with deviceId device-024"}],
    "warnings": ["slice 2026-03-01T10:00:00Z: this is what a run would give now"],
}


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_of_a_row_can_be_read_and_asked_at_any_width(
    page: Page, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    form = Form("telemetry", ("aggregates", "alerts"), "windowEnd=2026-03-01T10:45Z,deviceId=device-024", "aggregates")
    page.set_content(explain_page(SUMMARY, form=form).decode())
    assert page.get_by_role("heading", name="it would be made of 1 event and 1 row of reference data.").is_visible()
    assert page.get_by_label("Row: its time").input_value().startswith("windowEnd=")
    assert page.get_by_role("button", name="Explain").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(page) == []
