"""The fields of bodies, or the properties of their records, and the types of their values.

Bodies are JSON here (string, or views), as every `BodyDecoder` can give them; a string may be no JSON.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import one_array, select
from recapture.formats.json_bodies.kinds import asa_kind
from recapture.formats.json_bodies.spellings import value_of
from recapture.model import AsaType
from recapture.time_model import timestamps

_READING = f"""
    WITH objects AS (
        SELECT * FROM (SELECT row_number() OVER () AS event, {{json}} AS doc FROM bodies)
        WHERE json_type(doc) = 'OBJECT'
    )
    SELECT key AS name, atom->>'$' AS string,
        row_number() OVER (PARTITION BY event, lower(key) ORDER BY id) = 1 AS is_first,
        CASE
            WHEN type = 'UBIGINT' AND try_cast(atom->>'$' AS BIGINT) IS NULL THEN 'float' ELSE {asa_kind("type")}
        END AS kind
    FROM objects, json_each(doc) ORDER BY event, id
"""
_JSON = "CASE WHEN json_valid(body) THEN body::JSON END"
_COUNTING = """
    SELECT name, kind, count(*) FILTER (is_first) AS events, count(*) AS spelt
    FROM (SELECT *, row_number() OVER () AS place FROM bodies) GROUP BY name, kind ORDER BY min(place)
"""
_IN_STRINGS = {
    AsaType.BIGINT: r"^-?(?:0|[1-9][0-9]{0,17})$",
    AsaType.FLOAT: r"^-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?$",
    AsaType.BIT: r"^(?i:true|false)$",
}
"""Strings that stand for values of other types, if bodies have only strings. A code such as 007 remains a string."""


@dataclass
class Field:
    """A field of some bodies, ignoring case."""

    name: str
    """Name as most bodies spell it."""
    kinds: dict[AsaType | None, int] = field(default_factory=dict)
    """Number of events by the type of the value: a string that is an ISO time is a datetime, and None is null."""
    spellings: dict[str, int] = field(default_factory=dict)
    """Number of times that each spelling occurs."""
    record: tuple[str, ...] = ()
    """Path of the record that has it as a property; empty for a field at the top level of a body."""

    @property
    def path(self) -> tuple[str, ...]:
        """Path in the body."""
        return (*self.record, self.name)

    @property
    def dotted(self) -> str:
        """Path with dots: site.id"""
        return ".".join(self.path)

    @property
    def events(self) -> int:
        """Number of events that have the field."""
        return sum(self.kinds.values())


def count_keys(bodies: pa.Array) -> pa.Array:
    """Return how many keys each body has; 0 for one that is not a JSON object."""
    query = f"SELECT coalesce(len(json_keys({_JSON})), 0)::BIGINT AS keys FROM bodies"
    return one_array(select({"body": bodies}, query)["keys"])


def most_frequent(counts: pa.Table, number: int) -> tuple[pa.Table, str | None]:
    """Return the rows of `count_values` for the most frequent names in any case, and a name that is left out.

    Of names that are equally frequent, the first remain. The second value is None if no name is left out.
    """
    if len(counts) <= number:
        return counts, None
    named = counts.append_column("lower", pc.utf8_lower(counts["name"]))
    names = named.group_by("lower", use_threads=False).aggregate([("events", "sum")])
    frequent = pc.select_k_unstable(
        names.append_column("place", pa.array(range(len(names)))),
        number + 1,
        [("events_sum", "descending"), ("place", "ascending")],
    )
    chosen = names["lower"].take(frequent)
    is_kept = pc.is_in(named["lower"], chosen.slice(0, number).combine_chunks())
    return counts.filter(is_kept), chosen[number].as_py() if len(chosen) > number else None


def count_objects(bodies: pa.Array) -> int:
    """Return how many bodies are JSON objects."""
    query = f"SELECT count(*) AS n FROM (SELECT {_JSON} AS doc FROM bodies) WHERE json_type(doc) = 'OBJECT'"
    count: int = select({"body": bodies}, query)["n"][0].as_py()
    return count


def records_in(bodies: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the value at a path of each body, as its own body; NULL where there is none.

    An exact name wins, or else the first in other letters: {"Site": {"x": 1}}, ["site"] => {"x": 1}
    """
    for step in path:
        query = f"SELECT {value_of('doc', step)} AS value FROM (SELECT {_JSON} AS doc FROM bodies)"
        bodies = one_array(select({"body": bodies}, query)["value"])
    return bodies


def count_values(bodies: pa.Array, only_strings: bool) -> pa.Table:
    """Return how often each name has values of each type in bodies, in order of first appearance.

    With `only_strings`, a string has the type that it can be read as. The columns are `name`, `kind` (an AsaType, or
    NULL for null), `events` and `spelt`. Of the fields of a body whose names differ only in case, `events`
    counts the first, and `spelt` counts all.
    """
    values = select({"body": bodies}, _READING.format(json=_JSON))
    kinds = _refined_kinds(one_array(values["string"]), one_array(values["kind"]), only_strings)
    columns = {"name": one_array(values["name"]), "is_first": one_array(values["is_first"]), "kind": kinds}
    return select(columns, _COUNTING)


def _refined_kinds(values: pa.Array, kinds: pa.Array, only_strings: bool) -> pa.Array:
    """Return the types of values; a string that is a time is a datetime."""
    is_string = pc.fill_null(pc.equal(kinds, AsaType.STRING), False)
    strings = pc.if_else(is_string, values, None)
    for kind, pattern in _IN_STRINGS.items() if only_strings else ():
        matches = pc.fill_null(pc.match_substring_regex(strings, pattern), False)
        kinds = pc.if_else(pc.and_(matches, pc.equal(kinds, AsaType.STRING)), str(kind), kinds)
    return pc.if_else(pa.array(timestamps.parse(strings)[1]), str(AsaType.DATETIME), kinds)


def fields_of(counts: Iterable[pa.Table], record: Sequence[str] = ()) -> list[Field]:
    """Return the fields of all that `count_values` counted, in order of first appearance.

    What was counted are the values at the path `record` of the bodies.
    """
    fields: dict[str, Field] = {}
    for row in pa.concat_tables(counts).to_pylist():
        name, kind = row["name"], row["kind"] and AsaType(row["kind"])
        entry = fields.setdefault(name.lower(), Field(name, record=tuple(record)))
        entry.spellings[name] = entry.spellings.get(name, 0) + row["spelt"]
        if row["events"]:
            entry.kinds[kind] = entry.kinds.get(kind, 0) + row["events"]
    for entry in fields.values():
        entry.name = max(entry.spellings, key=entry.spellings.__getitem__)
    return list(fields.values())
