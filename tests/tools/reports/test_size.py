"""The size of a report: a month of hourly slices with 32 partitions stays below 2 MB."""

from pathlib import Path

from recapture.tools.reports.document import document
from recapture.tools.reports.page import page
from recapture.tools.reports.write import as_json
from tests.tools.reports.samples import made_source

LARGEST = 2_000_000


def test_the_report_of_a_month_with_32_partitions_stays_below_two_megabytes(tmp_path: Path) -> None:
    source = made_source(tmp_path, hours=31 * 24, partitions=32)
    content = document(source)
    assert content["ledger"]["unit"] == "day"
    assert len(content["ledger"]["groups"]) == 31
    assert len(content["timing"][0]["pictures"]) == 4
    assert len(page(content)) < LARGEST
    assert len(as_json(content)) < LARGEST
