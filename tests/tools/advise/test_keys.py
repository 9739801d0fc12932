"""Candidate keys (`recapture.tools.advise.keys`)."""

from typing import Any

import pyarrow as pa
import pytest

from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import InputColumn
from recapture.ordering.chunks import Chunk
from recapture.tools.advise import keys
from recapture.tools.advise.keys import MAX_CANDIDATES, Key, Keys, choose_keys
from tests.ordering.tasks import compiled
from tests.tools.advise.runs import event
from tests.worlds import at

PLAIN = "SELECT COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY eventTime GROUP BY TumblingWindow(minute, 5)"
BY_DEVICE = PLAIN.replace("eventTime", "eventTime OVER deviceId")
BY_SITE = PLAIN.replace("GROUP BY", "GROUP BY site.id,")


def chunk_of(content: list[bytes], only_strings: bool = False) -> Chunk:
    bodies = pa.array(content, pa.binary())
    events = pa.RecordBatch.from_pydict({"body": bodies, "unreadable": pa.nulls(len(bodies), pa.string())})
    decoder = JsonBodies(only_strings)
    return Chunk(events, (), (), (), is_last=True, is_judged=True, numbered=True, decoder=decoder)


def chosen(query: str, bodies: list[dict[str, Any]], only_strings: bool = False) -> Keys:
    content = [event(at(n), f"device-{n % 5}", **body) for n, body in enumerate(bodies)]
    return choose_keys(compiled(query), chunk_of(content, only_strings))


def names(keys: Keys) -> list[str]:
    return list(map(str, keys.all))


def test_a_field_whose_values_repeat_is_a_candidate_and_tells_devices_apart() -> None:
    keys = chosen(PLAIN, [{} for _ in range(20)])
    assert names(keys) == ["none", "deviceId"]
    assert str(keys.devices) == "deviceId"


def test_the_key_of_the_query_comes_first_then_none() -> None:
    keys = chosen(BY_DEVICE, [{"line": n % 10} for n in range(40)])
    assert names(keys) == ["deviceId", "none", "line"]
    assert str(keys.devices) == "deviceId"


def test_fields_that_the_query_reads_come_before_those_with_more_values() -> None:
    keys = chosen(BY_SITE, [{"site": {"id": f"s{n % 5 % 2}"}} for n in range(20)])
    assert names(keys) == ["none", "site.id", "deviceId"]
    assert str(keys.devices) == "deviceId", "it has more values"


def test_numbers_with_fractions_times_records_constants_and_unique_values_are_no_candidates() -> None:
    fields = [
        {"t": 20 + n % 3 / 2, "day": "2024-03-01T00:00:00Z", "r": {"x": n % 2}, "version": "1", "number": n}
        for n in range(20)
    ]
    assert names(chosen(PLAIN, fields)) == ["none", "deviceId"]


def test_a_field_that_some_events_lack_is_no_candidate() -> None:
    assert names(chosen(PLAIN, [{"line": n % 2} if n else {} for n in range(20)])) == ["none", "deviceId"]


def test_there_are_only_a_few_candidates_those_with_the_most_values() -> None:
    keys = chosen(PLAIN, [{f"f{size}": f"v{n % size}" for size in (2, 4, 10, 20)} for n in range(60)])
    assert names(keys) == ["none", "f20", "f10", "deviceId"]
    assert len(keys.candidates) == MAX_CANDIDATES


def test_in_texts_a_number_with_a_fraction_is_no_candidate() -> None:
    fields = [{"t": f"{20 + n % 5}.5"} for n in range(20)]
    assert names(chosen(PLAIN, fields)) == ["none", "deviceId", "t"]
    assert names(chosen(PLAIN, fields, only_strings=True)) == ["none", "deviceId"]


@pytest.mark.parametrize("door", [[0, 1], ["open", "closed"], [10, 11, 12]])
def test_a_state_that_devices_share_and_change_is_no_candidate(door: list[Any]) -> None:
    fields = [{"door": door[n // 2 % len(door)]} for n in range(60)]
    assert names(chosen(PLAIN, fields)) == ["none", "deviceId"]
    assert names(chosen(PLAIN.replace("GROUP BY", "WHERE door = 0 GROUP BY"), fields)) == ["none", "deviceId"]


def test_a_sensor_of_a_device_and_a_site_of_devices_are_candidates() -> None:
    fields = [{"sensor": n % 10, "site": n % 5 // 2, "name": f"n{n % 5}"} for n in range(60)]
    keys = chosen(PLAIN, fields)
    assert names(keys) == ["none", "sensor", "deviceId", "name"]
    assert str(keys.devices) == "deviceId", "it is a text"


def test_without_texts_the_integer_with_the_most_values_names_the_devices_and_0_and_1_do_not() -> None:
    def only(fields: list[dict[str, Any]]) -> list[str]:
        content = [event(at(n), None, **body) for n, body in enumerate(fields)]
        return names(choose_keys(compiled(PLAIN), chunk_of(content)))

    assert only([{"id": n % 5, "door": n // 2 % 2} for n in range(60)]) == ["none", "id"]
    assert only([{"door": n // 2 % 2} for n in range(60)]) == ["none"]


def test_a_key_is_named_in_a_sentence() -> None:
    assert [key.clause for key in chosen(BY_DEVICE, [{}, {}]).all] == ["with OVER deviceId", "without OVER"]
    assert Key(()).names == []


def test_fields_that_few_events_have_are_not_read_and_of_the_others_the_first_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sender can send any number of fields."""
    read: list[str] = []

    def recorded(column: InputColumn, chunk: Chunk) -> pa.Array:
        read.append(column.name)
        return column_values(column, chunk)

    column_values = keys.column_values
    monkeypatch.setattr(keys, "column_values", recorded)
    common = {f"field{number}": number for number in range(2 * keys.MAX_FIELDS)}
    chosen(PLAIN, [common | {f"x{number}": 1, f"y{number}": 1} for number in range(20)])
    assert read == ["deviceId", *(f"field{number}" for number in range(keys.MAX_FIELDS - 1))]
