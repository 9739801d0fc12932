"""How bodies spell the names of fields: in ASA a name finds its field in any case.

If a body has several fields whose names differ in case alone, the one that is spelt as in the query counts, or
else the first. Most blobs spell a name in one way, so a chunk is read in the spelling of its first body, and only the
bodies that may differ are looked at again (`differing`, `by_spelling`). A sender may spell the names of every event in
another way: only the most frequent spellings are read by themselves, and all others are made the same (`respelt`).
"""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.duckdb_sql import literal, one_array, pointer, select
from recapture.formats.views import copies
from recapture.model import InputColumn

Spelling = Mapping[InputColumn, InputColumn]
"""The columns of a query, each with its path as some bodies spell it."""
Path = tuple[str, ...]
MAX_SPELLINGS = 8
"""Largest number of spellings of a chunk that are read by themselves, without that of its first body."""
_LONG_NAME = 1000
"""Length of a name, in characters, from which no regular expression looks for it."""


def spelling_of(documents: pa.Array, columns: Iterable[InputColumn]) -> Spelling:
    """Return how the first body spells the columns; as the query does if it lacks them or is not JSON."""
    record = None
    with contextlib.suppress(StopIteration, ValueError, RecursionError):
        record = json.loads(next(body.as_py() for body in documents if body.is_valid))
    return {column: replace(column, path=tuple(_spelt(record, column.path))) for column in columns}


def _spelt(record: object, path: Path) -> Iterator[str]:
    for step in path:
        keys = record if isinstance(record, dict) else {}
        key = _chosen([step], keys)[step]
        yield key
        record = keys.get(key)


def differing(documents: pa.Array, values: Mapping[InputColumn, pa.Array], spelling: Spelling) -> NDArray[np.intp]:
    """Return the rows of the bodies that may spell a name in another way than `spelling`.

    `values` are the columns as read in that spelling. A value that was read under the query's own spelling is the right
    one. For all others, the body is looked at again if it holds the name in other letters, or has an escape in it.
    """
    suspect, differs = np.zeros((2, len(documents)), bool)
    for column, spelt in spelling.items():
        rows = values[column].is_null().to_numpy(zero_copy_only=False) | (spelt != column)
        if not rows.any():
            continue
        suspect |= rows
        suspects = copies(documents, np.flatnonzero(rows))
        for step in spelt.path:
            if len(step) >= _LONG_NAME:
                differs |= rows
                continue
            name = f'"{step}"'
            in_any_case = pc.count_substring(suspects, name, ignore_case=True)
            in_other_letters = pc.greater(in_any_case, pc.count_substring(suspects, name))
            differs[rows] |= in_other_letters.fill_null(False).to_numpy(zero_copy_only=False)
    if not suspect.any():
        return np.empty(0, np.intp)
    escaped = pc.match_substring(copies(documents, np.flatnonzero(suspect)), "\\")
    differs[suspect] |= escaped.fill_null(False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(differs)


def by_spelling(
    documents: pa.Array, columns: Sequence[InputColumn]
) -> Iterator[tuple[Spelling | None, NDArray[np.intp]]]:
    """Yield the spellings of some bodies, each with its rows; those that are not JSON spell names as the query does.

    There are at most MAX_SPELLINGS, the most frequent ones. The rows of all others come last, with None.
    """
    groups: list[tuple[dict[Path, Path], NDArray[np.intp]]] = [({(): ()}, np.arange(len(documents)))]
    for record in _records(columns):
        depth = len(record)
        names = {column.path[depth] for column in columns if column.path[:depth] == record and column.path != record}
        groups = [
            ({**spelt, **{(*record, name): (*spelt[record], key) for name, key in keys.items()}}, rows[chosen])
            for spelt, rows in groups
            for keys, chosen in _keys(documents.take(pa.array(rows)), spelt[record], sorted(names))
        ]
        groups = sorted(groups, key=lambda group: -len(group[1]))[:MAX_SPELLINGS]
    rare = np.ones(len(documents), bool)
    for spelt, rows in groups:
        rare[rows] = False
        yield {column: replace(column, path=spelt[column.path]) for column in columns}, rows
    if rare.any():
        yield None, np.flatnonzero(rare)


def respelt(documents: pa.Array, columns: Sequence[InputColumn]) -> tuple[pa.Array, Spelling]:
    """Return bodies that hold the columns alone, and spell them in one way: {"ID": 7, …} => {"c0": 7}

    Each body is read once, however it spells the names. A body that is not a JSON object stays as it is.
    """
    records = {path: number for number, path in enumerate(_records(columns))}
    relation = f"(SELECT body, {_json_object('body')} AS r0 FROM bodies)"
    for path, number in list(records.items())[1:]:
        inner = _json_object(value_of(f"r{records[path[:-1]]}", path[-1]))
        relation = f"(SELECT *, {inner} AS r{number} FROM {relation})"
    values = ", ".join(
        f"{literal(json.dumps(f'c{number}') + ':')} || {value_of(f'r{records[column.path[:-1]]}', column.path[-1])}"
        for number, column in enumerate(columns)
    )
    body = f"CASE WHEN r0 IS NULL THEN body ELSE '{{' || concat_ws(',', {values}) || '}}' END"
    spelling = {column: replace(column, path=(f"c{number}",)) for number, column in enumerate(columns)}
    return one_array(select({"body": documents}, f"SELECT {body} AS body FROM {relation}")["body"]), spelling


def _json_object(value: str) -> str:
    """Return the SQL of a value if it is a JSON object, else NULL."""
    return f"CASE WHEN json_valid({value}) THEN CASE WHEN json_type({value}) = 'OBJECT' THEN {value} END END"


def value_of(record: str, name: str) -> str:
    """Return the SQL of the value, as JSON, of the key that a name finds in a record; NULL if there is none."""
    same = f"list_filter(json_keys({record}), lambda key: key = {literal(name)})[1]"
    in_other_letters = f"list_filter(json_keys({record}), lambda key: lower(key) = {literal(name.lower())})[1]"
    path = f"'/' || replace(replace(coalesce({same}, {in_other_letters}), '~', '~0'), '/', '~1')"
    return f"json_extract({record}, {path})::VARCHAR"


def _records(columns: Iterable[InputColumn]) -> list[Path]:
    """Return the paths of the records that hold the columns, outer ones first."""
    records = {column.path[:depth] for column in columns for depth in range(len(column.path))}
    return sorted(records, key=lambda path: (len(path), path))


def _keys(documents: pa.Array, record: Path, names: Sequence[str]) -> Iterator[tuple[dict[str, str], NDArray[np.intp]]]:
    """Yield how the bodies spell some names in a record, each of the MAX_SPELLINGS most frequent ways with its rows."""
    known = ", ".join(literal(name.lower()) for name in names)
    keys = f"json_keys(body, {pointer(record)})" if record else "json_keys(body)"
    spelt_so = f"list_filter({keys}, lambda name: lower(name) IN ({known}))"
    query = (
        f"SELECT array_to_string(list_transform({spelt_so}, lambda name: to_json(name)), ',') AS keys "
        "FROM (SELECT CASE WHEN json_valid(body) THEN body END AS body FROM bodies)"
    )
    spelt = one_array(select({"body": documents}, query)["keys"]).fill_null("").dictionary_encode()
    index = spelt.indices.to_numpy()
    frequent = np.argsort(-np.bincount(index), kind="stable")[:MAX_SPELLINGS]
    for number in frequent:
        yield _chosen(names, json.loads(f"[{spelt.dictionary[number]}]")), np.flatnonzero(index == number)


def _chosen(names: Iterable[str], keys: Collection[str]) -> dict[str, str]:
    """Return the key that each name finds: the same, or else the first in other letters, or else the name itself."""
    return {
        name: name if name in keys else next((key for key in keys if key.lower() == name.lower()), name)
        for name in names
    }
