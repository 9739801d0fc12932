"""Great Expectations' Data Docs: a page for each suite, with what was found, and no markup of a device's."""

import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from recapture.quality import data_docs, suites
from tests.paths import ROOT
from tests.quality.staging import COLUMNS, SoundRun

HOSTILE = "<img src=x onerror=alert(1)>"


def test_every_page_can_be_reached_and_shows_texts_of_devices_as_texts(tmp_path: Path, sound: SoundRun) -> None:
    sound.aggregates = sound.aggregates.assign(deviceId=HOSTILE, avgTemperature=21.5)
    audited = sound.audit(suites.load(ROOT / "expectations" / "telemetry.json", COLUMNS))
    index = data_docs.write(audited, "run-1", datetime(2026, 3, 2, tzinfo=UTC), tmp_path / "site")
    links = set(re.findall(r"(?:expectations|validations)/[^\"']+\.html", index.read_text("utf-8")))
    pages = {index.parent / unquote(link) for link in links}
    assert [(validation.suite_name, validation.judged) for validation in audited.validations] == [
        ("telemetry", "metrics"),
        ("telemetry", "aggregates"),
    ]
    assert len(pages) == 4
    texts = [page.read_text("utf-8") for page in pages]
    assert not any(HOSTILE in text for text in texts)
    (results,) = (text for text in texts if "deviceId=&lt;img src=x onerror=alert(1)&gt;" in text)
    assert "no device repeats one temperature" in results
    assert "one row for each" not in results
