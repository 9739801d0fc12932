"""Load suites of Great Expectations strictly. A suite is one hand-written JSON file.

Great Expectations silently drops an expectation that it does not know, and an empty suite succeeds. This loader raises
DefinitionError for every mistake, with the file and the expectation. It takes names and arguments from the schemas in
the package of Great Expectations, and those of Recapture's own expectations from `quality.signatures`. It does not
import the package, because the import takes seconds.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from recapture.errors import DefinitionError
from recapture.process.regular_files import read_regular
from recapture.process.wording import did_you_mean
from recapture.quality.metrics import COLUMNS, DERIVED_COLUMNS
from recapture.quality.signatures import SIGNATURES, Asset, Signature
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

Severity = Literal["critical", "warning", "info"]
Check = Literal[
    "events_can_be_used",
    "events_reach_the_query",
    "query_returns_rows",
    "archive_has_no_holes",
    "no_published_event_is_lost",
    "events_of_every_key_reach_the_query",
    "verdicts_equal_the_metrics",
    "no_key_disappears",
]
"""Built-in check on slices. A suite can set another severity for it."""

BUILT_IN = "run_metrics"
"""Name that the results of the built-in checks have as their suite."""

ParameterValue = int | float | str
"""Value of a parameter of the user's."""


class RunParameters(NamedTuple):
    """Parameters that a run gives to every suite, as in `{"$PARAMETER": "slice_count"}`."""

    slice_count: int
    run_start: datetime
    """Start of the run's range, aware."""
    run_end: datetime


MAX_DAYS = 366
"""Largest number of days of history that an expectation may ask for."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, the strictest first."""
_NOT_ARGUMENTS = (
    *("id", "meta", "notes", "description", "severity", "result_format", "catch_exceptions", "rendered_content"),
    *("windows", "batch_id", "metadata"),
)
"""Properties in the schemas that are not arguments in kwargs."""
_ABOUT_THE_COLUMNS = (
    "expect_column_to_exist",
    "expect_table_columns_to_match_ordered_list",
    "expect_table_columns_to_match_set",
)
"""Expectations that may name columns that do not exist."""


@dataclass(frozen=True)
class Expectation:
    """Expectation as declared in a suite."""

    where: str
    """File, number and type of the expectation, for messages."""
    type: str
    asset: Asset
    severity: Severity
    kwargs: Mapping[str, Any]
    description: str | None = None
    """What holds if the expectation is met."""
    notes: str | list[str] | None = None
    failure: str | None = None
    """What is so if it is not met."""


@dataclass(frozen=True)
class Suite:
    """Suite as declared: at least one expectation, and no duplicates."""

    name: str
    expectations: tuple[Expectation, ...]
    severities: Mapping[Check, Severity] = field(default_factory=dict)
    """Severities that the suite sets for built-in checks."""
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    """Values of the user's own parameters in this run."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Meta(_Section):
    asset: Asset | None = None
    failure: str | None = None


class _Expectation(_Section):
    type: str
    severity: Severity = "critical"
    description: str | None = None
    notes: str | list[str] | None = None
    kwargs: dict[str, Any] = {}
    meta: _Meta = _Meta()


class _Suite(_Section):
    name: Annotated[str, Field(min_length=1)]
    notes: Any = None
    expectations: Annotated[list[_Expectation], Field(min_length=1)]
    severities: dict[Check, Severity] = {}


def load(
    path: Path, aggregate_columns: Collection[str], parameters: Mapping[str, ParameterValue] | None = None
) -> Suite:
    """Return the suite in a user's file. Raise DefinitionError if it has a mistake, or does not use a parameter.

    `aggregate_columns` are the columns of the rows to publish, `parameters` the values of the user's own parameters.
    """
    suite = _load(path, aggregate_columns, parameters or {})
    for name in RunParameters._fields:
        if name in suite.parameters:
            raise DefinitionError(
                f"{path}: every run has the parameter {name}; choose another name in the pipeline file"
            )
    used = {name for expectation in suite.expectations for name in _parameters(expectation.kwargs)}
    for name in suite.parameters:
        if name not in used:
            raise DefinitionError(f"{path}: no expectation uses the parameter {name}; remove it from the pipeline file")
    if suite.name == BUILT_IN:
        raise DefinitionError(f'{path}: the name "{suite.name}" belongs to the built-in checks; choose another')
    return suite


def _load(path: Path, aggregate_columns: Collection[str], parameters: Mapping[str, ParameterValue]) -> Suite:
    try:
        declared = _Suite.model_validate(_read(path))
    except ValidationError as error:
        raise DefinitionError(_message(path, error.errors()[0])) from None
    columns = {"metrics": (*COLUMNS, *DERIVED_COLUMNS), "aggregates": tuple(aggregate_columns)}
    expectations = tuple(
        _validate(item, f"{path}: expectation {number}", columns, (*RunParameters._fields, *parameters))
        for number, item in enumerate(declared.expectations, 1)
    )
    _reject_duplicates(expectations)
    return Suite(declared.name, expectations, declared.severities, parameters)


def _read(path: Path) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise DefinitionError(f'{path}: the key "{twice}" is given twice in one object; remove one of them')
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise DefinitionError(f"{path}: {constant} is not a JSON number")

    try:
        return json.loads(read_regular(path).decode(), object_pairs_hook=unique, parse_constant=refuse)
    except FileNotFoundError:
        raise DefinitionError(f"{path}: the suite file does not exist; correct the path") from None
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DefinitionError(f"{path}: the suite cannot be read: {error}") from None


def _message(path: Path, problem: ErrorDetails) -> str:
    """Return the message for a mistake that pydantic reports."""
    section: type[BaseModel] = _Suite
    where, steps = str(path), list(problem["loc"])
    if steps[:1] == ["expectations"] and len(steps) > 1:
        section, where, steps = _Expectation, f"{path}: expectation {int(steps[1]) + 1}", steps[2:]
    if steps[:1] == ["meta"] and len(steps) > 1:
        section, steps = _Meta, steps[1:]
    name, value = str(steps[0]) if steps else "", problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            keys = tuple(section.model_fields)
            return _unknown(name, keys, where, "unknown key", f"the known keys are {_list(keys)}")
        case "literal_error" if steps[-1:] == ["[key]"]:
            checks = get_args(Check)
            return _unknown(value, checks, where, "unknown built-in check", f"the checks are {_list(checks)}")
        case "literal_error":
            what, known = ("asset", get_args(Asset)) if name == "asset" else ("severity", SEVERITIES)
            return _unknown(value, known, where, f"unknown {what}", f"use {', '.join(known[:-1])} or {known[-1]}")
    return f"{where}: {_WRONG_VALUE_MESSAGES[section.__name__, name]}"


_WRONG_VALUE_MESSAGES = {
    ("_Suite", ""): "a suite must be an object with a name and a list of expectations",
    ("_Suite", "name"): 'give the suite a name, such as "name": "telemetry"',
    ("_Suite", "expectations"): "expectations must be a list with at least one expectation",
    ("_Suite", "severities"): 'severities must be an object such as {"query_returns_rows": "info"}',
    ("_Expectation", ""): "an expectation must be an object with a type, and its arguments in kwargs",
    ("_Expectation", "type"): "give the expectation a type, such as expect_column_values_to_not_be_null",
    ("_Expectation", "description"): "description must be a string",
    ("_Expectation", "notes"): "notes must be a string or a list of strings",
    ("_Expectation", "kwargs"): "kwargs must be an object with the expectation's arguments",
    ("_Expectation", "meta"): 'meta must be an object such as {"asset": "metrics"}',
    ("_Meta", "failure"): "failure must be a string that says what is true if the expectation is not met",
}


def _validate(
    declared: _Expectation, where: str, columns: Mapping[str, tuple[str, ...]], parameters: Collection[str]
) -> Expectation:
    kind, kwargs = declared.type, declared.kwargs
    _require_known(kind, known_types(), where, "unknown expectation")
    where = f"{where} ({kind})"
    signature = SIGNATURES.get(kind)
    asset = declared.meta.asset or (signature.asset if signature else "aggregates")
    if signature:
        _check_own_arguments(signature, asset, kwargs, where)
    else:
        _check_arguments(kind, kwargs, where)
    _check_parameters(kwargs, parameters, where)
    for column in columns_of(kwargs) if kind not in _ABOUT_THE_COLUMNS else ():
        hint = f"the columns are {_list(columns[asset])}"
        _require_known(column, columns[asset], where, f"the {asset} have no column", hint)
    return Expectation(
        *(where, kind, asset, declared.severity, kwargs, declared.description, declared.notes, declared.meta.failure)
    )


def slices_before(expectations: Iterable[Expectation], asset: Asset, slices: list[Slice]) -> list[int]:
    """Return the starts of the slices before a run that its expectations on an asset compare it with, in ticks.

    `slices` are those of the run, all of one length, in order.
    """
    first, length = slices[0].start, slices[0].end - slices[0].start
    times_of_day = {slice_.start % ticks.TICKS_PER_DAY for slice_ in slices}
    starts: set[int] = set()
    for expectation in expectations:
        signature = SIGNATURES.get(expectation.type)
        if signature is None or signature.history is None or expectation.asset != asset:
            continue
        days = expectation.kwargs.get("days", signature.history.days)
        starts.update(
            start
            for start in range(first - days * ticks.TICKS_PER_DAY, first, length)
            if start % ticks.TICKS_PER_DAY in times_of_day or not signature.history.same_time
        )
    return sorted(starts)


def _check_arguments(kind: str, kwargs: Mapping[str, object], where: str) -> None:
    """Raise DefinitionError if an argument is unknown or missing; `require_valid_arguments` checks the values."""
    schema = schema_of(kind)
    if schema is None:
        return
    sources = schema["properties"]["metadata"]["properties"].get("supported_data_sources", {}).get("const", ["Pandas"])
    if "Pandas" not in sources:
        raise DefinitionError(
            f"{where}: it judges SQL tables only, but the audit judges pandas frames; use another one"
        )
    known = [name for name in schema["properties"] if name not in _NOT_ARGUMENTS]
    _require_arguments(kwargs, known, schema.get("required", ()), where)


def _check_own_arguments(signature: Signature, asset: Asset, kwargs: Mapping[str, object], where: str) -> None:
    """Raise DefinitionError as `_check_arguments` does, and if the asset is not the one that is judged."""
    if asset != signature.asset:
        raise DefinitionError(f"{where}: it judges the {signature.asset} only; remove asset from meta")
    _require_arguments(kwargs, signature.arguments, signature.required, where)
    key = kwargs.get("key_columns", [])
    if not isinstance(key, list):
        raise DefinitionError(f'{where}: key_columns must be a list such as ["deviceId"]')
    days = kwargs.get("days", 1)
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
        raise DefinitionError(f"{where}: days must be an integer from 1 to {MAX_DAYS}")


def _require_arguments(
    kwargs: Mapping[str, object], known: Collection[str], required: Collection[str], where: str
) -> None:
    for name in kwargs:
        _require_known(name, known, where, "unknown argument", f"the arguments are {_list(known)}")
    missing = [name for name in required if name not in kwargs]
    if missing:
        raise DefinitionError(f"{where}: kwargs lacks {_list(missing)}")


def _check_parameters(kwargs: Mapping[str, object], parameters: Collection[str], where: str) -> None:
    hint = f"the parameters are {_list(parameters)}; name others under quality.parameters in the pipeline file"
    for name in _parameters(kwargs):
        _require_known(name, parameters, where, "unknown $PARAMETER", hint)


def _parameters(value: object) -> Iterator[object]:
    """Yield every name that `$PARAMETER` has in a JSON value."""
    if isinstance(value, Mapping):
        if "$PARAMETER" in value:
            yield value["$PARAMETER"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _parameters(item)


def columns_of(kwargs: Mapping[str, object]) -> Iterator[object]:
    """Yield the columns that an expectation's arguments name."""
    for key in ("column", "column_A", "column_B"):
        if key in kwargs:
            yield kwargs[key]
    for key in ("column_list", "key_columns"):
        listed = kwargs.get(key, [])
        yield from listed if isinstance(listed, list) else [listed]


def _reject_duplicates(expectations: tuple[Expectation, ...]) -> None:
    for number, duplicate in enumerate(expectations):
        for first in expectations[:number]:
            if (duplicate.type, duplicate.asset, duplicate.kwargs) == (first.type, first.asset, first.kwargs):
                raise DefinitionError(f"{duplicate.where}: this repeats {first.where}; remove one of them")


def _require_known(name: object, known: Collection[str], where: str, what: str, hint: str = "") -> None:
    if not isinstance(name, str) or name not in known:
        raise DefinitionError(_unknown(name, known, where, what, hint))


def _unknown(name: object, known: Collection[str], where: str, what: str, hint: str) -> str:
    advice = (did_you_mean(name, known) if isinstance(name, str) else None) or hint
    return f"{where}: {what} {json.dumps(name)}" + (f"; {advice}" if advice else "")


def _list(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def require_installed() -> None:
    """Raise DefinitionError unless Great Expectations is installed."""
    schema_folder()


@cache
def schema_folder() -> Path:
    """Return the folder of Great Expectations' schemas. Raise DefinitionError unless it is installed."""
    package = find_spec("great_expectations")
    if package is None or not package.submodule_search_locations:
        raise DefinitionError("the audit needs Great Expectations: install recapture[quality]")
    return Path(package.submodule_search_locations[0], "expectations", "core", "schemas")


@cache
def _index() -> dict[str, Any]:
    return cast(dict[str, Any], json.loads((schema_folder() / "index.json").read_text("utf-8")))


@cache
def known_types() -> tuple[str, ...]:
    """Return the types of all expectations that a suite can name."""
    index = _index()
    return (*index["expectations"], *index["documented_absent"], *SIGNATURES)


def schema_of(kind: str) -> dict[str, Any] | None:
    """Return the JSON schema of a type of expectation; None if Great Expectations has none for it."""
    entry = _index()["expectations"].get(kind)
    if entry is None:
        return None
    return cast(dict[str, Any], json.loads((schema_folder() / entry["schema_file"]).read_text("utf-8")))
