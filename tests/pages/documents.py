"""Documents from which pages are made: of a comparison with a live job, of the events of a row, and of a difference."""

from typing import Any

REASON = "late tolerance 5 s"
TREATED = (
    "partition 0, sequence number 7, in contoso/telemetry/0/2026/03/01/10/05/00.avro, arrived 14 min after its time: "
)
VALUES = ["2026-03-01T10:05:00Z", "device-000000001", 8, 20.123456, 21.5]
EXAMPLE = {"reason": REASON, "slice_start": "2026-03-01T10:00:00Z"}
COMPARISON: dict[str, Any] = {
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
        EXAMPLE | {"side": "live", "values": VALUES, "events": [TREATED + "late_dropped there, on_time here"]},
        EXAMPLE | {"side": "ours", "values": [*VALUES[:2], 9, *VALUES[3:]], "events": []},
        EXAMPLE | {"side": "ours", "values": ["2026-03-01T10:10:00Z", *VALUES[1:]], "events": []},
    ],
    "key": ["windowEnd", "deviceId"],
}
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
ROW: dict[str, Any] = {
    "pipeline": "telemetry",
    "output": "aggregates",
    "slice": {"start": "2026-03-01T10:00:00Z", "published_by": None, "run": None},
    "system_timestamp": "2026-03-01T10:45:00Z",
    "window": {"start": "2026-03-01T10:40:00Z", "end": "2026-03-01T10:45:00Z"},
    "row": {"windowEnd": "2026-03-01T10:45:00Z", "deviceId": "device-024", "events": 1, "place": None},
    "why": None,
    "events": [{**EVENT, "role": "deciding"}, {**EVENT, "role": "considered"}],
    "counts": {"deciding": 1, "considered": 20_000},
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
_ROWS = {"before": 3, "after": 4, "changed": 1, "only_before": 1, "only_after": 1, "new": 1}
DIFFERENCE: dict[str, Any] = {
    "pipeline": "telemetry",
    "version": "1",
    "from": "2026-03-01T10:00:00Z",
    "to": "2026-03-01T12:00:00Z",
    "after": {"late_seconds": 60},
    "slices": 2,
    "of_slices": 2,
    "equal": False,
    "warnings": ["the query has another hash"],
    "outputs": [
        {
            "alias": "aggregates",
            "key": ["windowEnd", "deviceId"],
            "slices": {"different": 1, "equal": 0, "new": 1, "absent": 0, "missing": 0, "unreadable": 0},
            "rows": _ROWS,
            "missing": [],
            "unreadable": [],
            "types": [{"name": "place", "before": None, "after": "nvarchar(max)", "compared": False, "slices": 1}],
            "columns": [
                {
                    "name": "events",
                    "changed": 1,
                    "largest_difference": 2,
                    "mean_difference": 2.0,
                    "sum_before": 10,
                    "sum_after": 12,
                }
            ],
            "example_columns": ["windowEnd", "deviceId", "events"],
            "examples": [
                {
                    "before": ["2026-03-01T10:05:00Z", "device-1", "8"],
                    "after": ["2026-03-01T10:05:00Z", "device-1", "10"],
                    "explain": "recapture explain telemetry.yaml --row windowEnd=2026-03-01T10:05Z,deviceId=device-1",
                },
                {"before": None, "after": ["2026-03-01T10:05:00Z", "device-2", "1"], "explain": "recapture explain"},
                {"before": ["2026-03-01T10:05:00Z", "device-3", "1"], "after": None},
            ],
            "by_slice": [{"slice_start": "2026-03-01T10:00:00Z", **_ROWS}],
        }
    ],
}
