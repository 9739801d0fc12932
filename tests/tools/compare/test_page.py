"""The page of a comparison in a browser."""

from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from recapture.tools.compare.page import page as comparison_page
from tests.browser import serious_findings

REASON = "late tolerance 5 s"
EVENT = (
    "partition 0, sequence number 7, in contoso/telemetry/0/2026/03/01/10/05/00.avro, arrived 14 min after its time: "
)
VALUES = ["2026-03-01T10:05:00Z", "device-000000001", 8, 20.123456, 21.5]
DOCUMENT: dict[str, Any] = {
    "pipeline": "telemetry",
    "output": "aggregates",
    "live": "file:///live",
    "version": "1",
    "from": "2026-03-01T10:00:00Z",
    "to": "2026-03-01T11:00:00Z",
    "rows": 100,
    "equal": 98,
    "different": 2,
    "live_rows": 99,
    "files": 3,
    "explained": True,
    **dict.fromkeys(("missing_columns", "unpublished", "silences", "warnings", "tried"), ()),
    "reasons": [{"reason": REASON, "causes": [REASON], "rows": 2, "changed": 2, "only_live": 0, "only_ours": 0}],
    "by_slice": [{"slice_start": "2026-03-01T10:00:00Z", "reasons": {REASON: 2}}],
    "example_columns": ["windowEnd", "deviceId", "events", "avgTemperature", "maxTemperature"],
    "examples": [
        {"reason": REASON, "side": "live", "values": VALUES, "events": []},
        {"reason": REASON, "side": "ours", "values": VALUES, "events": [EVENT + "late_dropped there, on_time here"]},
    ],
    "key": ["windowEnd", "deviceId"],
}


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_events_of_an_example_can_be_read_at_any_width(
    page: Page, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.set_content(comparison_page(DOCUMENT).decode())
    page.get_by_text("Events that the live job treated differently").click()
    box = page.get_by_text(EVENT).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(page) == []
