"""The strict loader of Great Expectations suites: hand-written JSON, one file each.

Great Expectations drops an expectation that it does not know in silence, and an empty suite succeeds. Here every
mistake is a DefinitionError that names the file and the expectation. Names and arguments come from the schemas in the
package of Great Expectations, which is not imported: that takes 6 to 10 s.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast, get_args

from recapture.errors import DefinitionError
from recapture.quality.metrics import COLUMNS, DERIVED_COLUMNS

Asset = Literal["metrics", "aggregates"]
Severity = Literal["critical", "warning", "info"]
Check = Literal["events_can_be_used", "events_reach_the_query", "query_returns_rows"]
"""A built-in check on slices; a suite may choose another severity for it."""

BUILT_IN = Path(__file__).with_name("run_metrics.json")
PARAMETERS = ("slice_count", "run_start", "run_end")
"""What `{"$PARAMETER": …}` may name: a count, and the run's bounds as UTC timestamps."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The strictest first."""
_ASSETS = get_args(Asset)
_CHECKS = get_args(Check)
_SUITE_KEYS = ("name", "notes", "expectations", "severities")
_EXPECTATION_KEYS = ("type", "severity", "description", "notes", "kwargs", "meta")
_NOT_ARGUMENTS = (
    *("id", "meta", "notes", "description", "severity", "result_format", "catch_exceptions", "rendered_content"),
    *("windows", "batch_id", "metadata"),
)
"""What the schemas list beside the arguments that kwargs may hold."""
_ABOUT_THE_COLUMNS = (
    "expect_column_to_exist",
    "expect_table_columns_to_match_ordered_list",
    "expect_table_columns_to_match_set",
)


@dataclass(frozen=True)
class Expectation:
    """One expectation as declared."""

    where: str
    """The file and the expectation's place in it, for messages."""
    type: str
    asset: Asset
    severity: Severity
    kwargs: Mapping[str, Any]
    description: str | None = None
    notes: str | list[str] | None = None


@dataclass(frozen=True)
class Suite:
    """A suite as declared: at least one expectation, no two alike."""

    name: str
    expectations: tuple[Expectation, ...]
    severities: Mapping[Check, Severity] = field(default_factory=dict)
    """Of built-in checks, where they are to differ from what is built in."""


def built_in() -> Suite:
    """The suite on the run's metrics, which every audit runs."""
    return _load(BUILT_IN, aggregates=())


def load(path: Path, aggregates: Collection[str]) -> Suite:
    """A user's suite; `aggregates` are the columns of the rows to publish. Raises DefinitionError."""
    suite = _load(path, aggregates)
    if suite.name == built_in().name:
        raise DefinitionError(f'{path}: the name "{suite.name}" belongs to the built-in suite; choose another')
    return suite


def _load(path: Path, aggregates: Collection[str]) -> Suite:
    declared = _read(path)
    if not isinstance(declared, dict):
        raise DefinitionError(f"{path}: a suite is an object with a name and a list of expectations")
    _check_keys(declared, _SUITE_KEYS, str(path), "a suite's keys")
    name = declared.get("name")
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"{path}: name the suite by a text under the key name")
    listed = declared.get("expectations")
    if not isinstance(listed, list) or not listed:
        raise DefinitionError(f"{path}: the list of expectations is empty; a suite declares at least one")
    columns = {"metrics": (*COLUMNS, *DERIVED_COLUMNS), "aggregates": tuple(aggregates)}
    expectations = tuple(_expectation(item, f"{path}: expectation {n}", columns) for n, item in enumerate(listed, 1))
    _refuse_twins(expectations)
    return Suite(name, expectations, _severities(declared.get("severities", {}), str(path)))


def _severities(declared: object, where: str) -> Mapping[Check, Severity]:
    if not isinstance(declared, dict):
        raise DefinitionError(f'{where}: severities is an object such as {{"query_returns_rows": "info"}}')
    _check_keys(declared, _CHECKS, where, "the built-in checks with a severity of your choice")
    for check, severity in declared.items():
        _check_name(severity, SEVERITIES, f"{where}: {check}", "unknown severity", "critical, warning or info")
    return cast(Mapping[Check, Severity], declared)


def _read(path: Path) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise DefinitionError(f'{path}: the key "{twice}" is given twice in one object; keep one')
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise DefinitionError(f"{path}: {constant} is not a JSON number")

    try:
        return json.loads(path.read_text("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except FileNotFoundError:
        raise DefinitionError(f"{path}: there is no such suite file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: the suite cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from None


def _expectation(declared: object, where: str, columns: Mapping[str, tuple[str, ...]]) -> Expectation:
    if not isinstance(declared, dict):
        raise DefinitionError(f"{where}: an expectation is an object with a type and kwargs")
    _check_keys(declared, _EXPECTATION_KEYS, where, "an expectation's keys")
    kind = declared.get("type")
    if not isinstance(kind, str):
        raise DefinitionError(f"{where}: the type is missing, such as expect_column_values_to_not_be_null")
    _check_name(kind, _known_types(), where, "unknown expectation")
    where = f"{where} ({kind})"
    severity = declared.get("severity", "critical")
    _check_name(severity, SEVERITIES, where, "unknown severity", "critical, warning or info")
    for key in ("description", "notes"):
        if not isinstance(declared.get(key, ""), str | list if key == "notes" else str):
            raise DefinitionError(f"{where}: {key} is text")
    kwargs = declared.get("kwargs", {})
    if not isinstance(kwargs, dict):
        raise DefinitionError(f"{where}: kwargs is an object of the expectation's arguments")
    asset = _asset(declared.get("meta", {}), where)
    _check_arguments(kind, kwargs, where)
    _check_parameters(kwargs, where)
    for column in columns_of(kwargs) if kind not in _ABOUT_THE_COLUMNS else ():
        _check_name(column, columns[asset], where, f"the {asset} have no column", f"they have {_list(columns[asset])}")
    return Expectation(
        where,
        kind,
        asset,
        cast(Severity, severity),
        kwargs,
        declared.get("description"),
        declared.get("notes"),
    )


def _asset(meta: object, where: str) -> Asset:
    if not isinstance(meta, dict):
        raise DefinitionError(f'{where}: meta is an object such as {{"asset": "metrics"}}')
    _check_keys(meta, ("asset",), where, "the keys of meta")
    asset = meta.get("asset", "aggregates")
    _check_name(asset, _ASSETS, where, "unknown asset", "metrics or aggregates")
    return cast(Asset, asset)


def _check_arguments(kind: str, kwargs: Mapping[str, object], where: str) -> None:
    """Check the names of the arguments; their values are checked by Great Expectations, see checkpoint.check."""
    schema = _schema(kind)
    if schema is None:
        return
    sources = schema["properties"]["metadata"]["properties"].get("supported_data_sources", {}).get("const", ["Pandas"])
    if "Pandas" not in sources:
        raise DefinitionError(f"{where}: it judges SQL tables only, and the audit judges pandas frames; use another")
    known = [name for name in schema["properties"] if name not in _NOT_ARGUMENTS]
    for name in kwargs:
        _check_name(name, known, where, "unknown argument", f"it takes {_list(known)}")
    missing = [name for name in schema.get("required", ()) if name not in kwargs]
    if missing:
        raise DefinitionError(f"{where}: kwargs lacks {_list(missing)}")


def _check_parameters(kwargs: Mapping[str, object], where: str) -> None:
    for name in _parameters(kwargs):
        _check_name(name, PARAMETERS, where, "unknown $PARAMETER", f"known are {_list(PARAMETERS)}")


def _parameters(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        if "$PARAMETER" in value:
            yield value["$PARAMETER"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _parameters(item)


def columns_of(kwargs: Mapping[str, object]) -> Iterator[object]:
    """Yield what an expectation's arguments name as columns."""
    for key in ("column", "column_A", "column_B"):
        if key in kwargs:
            yield kwargs[key]
    listed = kwargs.get("column_list", [])
    yield from listed if isinstance(listed, list) else [listed]


def _refuse_twins(expectations: tuple[Expectation, ...]) -> None:
    for n, twin in enumerate(expectations):
        for first in expectations[:n]:
            if (twin.type, twin.asset, twin.kwargs) == (first.type, first.asset, first.kwargs):
                raise DefinitionError(f"{twin.where}: says the same as {first.where}; keep one")


def _check_keys(declared: Mapping[str, object], known: tuple[str, ...], where: str, are: str) -> None:
    for key in declared:
        _check_name(key, known, where, "unknown key", f"{are} are {_list(known)}")


def _check_name(name: object, known: Collection[str], where: str, what: str, hint: str = "") -> None:
    if isinstance(name, str) and name in known:
        return
    close = get_close_matches(name, known, 1) if isinstance(name, str) else []
    advice = f"did you mean {close[0]}?" if close else hint
    raise DefinitionError(f"{where}: {what} {json.dumps(name)}" + (f"; {advice}" if advice else ""))


def _list(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


@cache
def _schemas() -> Path:
    package = find_spec("great_expectations")
    if package is None or not package.submodule_search_locations:
        raise DefinitionError("great-expectations is not installed; install the requirements of the lock file")
    return Path(package.submodule_search_locations[0], "expectations", "core", "schemas")


@cache
def _index() -> dict[str, Any]:
    return cast(dict[str, Any], json.loads((_schemas() / "index.json").read_text("utf-8")))


@cache
def _known_types() -> tuple[str, ...]:
    index = _index()
    return (*index["expectations"], *index["documented_absent"])


def _schema(kind: str) -> dict[str, Any] | None:
    entry = _index()["expectations"].get(kind)
    if entry is None:
        return None
    return cast(dict[str, Any], json.loads((_schemas() / entry["schema_file"]).read_text("utf-8")))
