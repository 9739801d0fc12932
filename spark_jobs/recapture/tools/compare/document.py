"""The comparison of a live job's output with published rows, in JSON types."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recapture import __version__
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import DefinitionError, RunError
from recapture.model import AsaType, OutputColumn
from recapture.quality.sentences import value_text
from recapture.run.slices import slice_length
from recapture.storage import in_parallel
from recapture.table.publications import Entry
from recapture.table.row_changes import quoted
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.compare.assumptions import (
    Assumption,
    Trial,
    are_known,
    changes_events,
    combinations_of,
    reason_of,
    trial_of,
)
from recapture.tools.compare.example_events import Example, events_behind
from recapture.tools.compare.holes import incomplete_ends
from recapture.tools.compare.live import SLICE, TYPES, Layout, Live, normal, read_live
from recapture.tools.compare.reasons import Compared, Reasons, ends_in
from recapture.tools.compare.trials import Compute, Trials
from recapture.tools.compare.words import DIGITS, DUPLICATES, SEPARATOR, UNEXPLAINED, causes, words
from recapture.tools.diff.document import DIFFERENT
from recapture.tools.diff.files import StoredFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_EXAMPLES = 5
"""Largest number of differences that are shown of each reason."""
MAX_EXAMPLES_WITH_EVENTS = 5
"""Largest number of differences of each reason whose events are named."""


@dataclass(frozen=True)
class Comparison:
    """What is compared with the output of a live job."""

    pipeline: Pipeline
    output: Output
    slices: Sequence[Slice]
    entries: Mapping[str, Entry]
    """Entries of the slices in the publications, by slice_start."""
    live_names: Mapping[str, str]
    """Names of columns in the output of the live job, by our names, where they differ."""
    time: str
    """Column of the end of a row's window."""
    downtimes: Sequence[tuple[datetime, datetime]] = ()
    """Given times between which the live job did not run."""
    late_seconds: int | None = None
    """Late tolerance of the live job; None if it is not given."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.pipeline.compiled(self.output).columns

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that identify a row: what depends on the group only, or else times and strings."""
        grouped = self.pipeline.compiled(self.output).group_columns
        kinds = (AsaType.DATETIME, AsaType.STRING)
        return grouped or tuple(column.name for column in self.columns if column.type in kinds)

    @property
    def reach(self) -> timedelta:
        """Length of the longest window."""
        longest = max(window.look_back for window in self.pipeline.query.windows)
        return timedelta(microseconds=longest // ticks.TICKS_PER_MICROSECOND)

    @property
    def stopped(self) -> list[tuple[datetime, datetime]]:
        """Given downtimes, each from the end of the last window that was certainly written before."""
        late = self.pipeline.job.late_seconds if self.late_seconds is None else self.late_seconds
        lag = timedelta(seconds=max(late, 0))
        return [(start - lag, end) for start, end in self.downtimes]

    @property
    def by_number(self) -> dict[int, Slice]:
        """Slices by their numbers, as SLICE has them."""
        return {number_of(slice_): slice_ for slice_ in self.slices}


@dataclass(frozen=True)
class _Findings:
    """What a comparison found, apart from its examples."""

    live: Live
    ours: str
    """Query of the published rows."""
    unpublished: Sequence[str]
    """Starts of slices without published rows."""
    reasons: Reasons
    tried: Mapping[str, Sequence[Assumption]]
    """Assumptions with which the rows were computed again, by reason."""
    silences: Sequence[tuple[datetime, datetime]]
    """Times between which the live job seems to have stood still."""
    warnings: Sequence[str]


def output_of(pipeline: Pipeline, alias: str | None) -> Output:
    """Return the output of this alias, or the only one. Raise DefinitionError if there is no such output."""
    named = [output for output in pipeline.outputs if alias is None or output.alias.lower() == alias.lower()]
    if len(named) != 1:
        known = ", ".join(output.alias for output in pipeline.outputs)
        raise DefinitionError(f"choose the output with --alias: {known}")
    return named[0]


def time_column(pipeline: Pipeline, output: Output, named: str | None) -> str:
    """Return the column of the end of a row's window. Raise DefinitionError if it is not a datetime, or not known."""
    compiled = pipeline.compiled(output)
    times = [column.name for column in compiled.columns if column.type is AsaType.DATETIME]
    if named is not None:
        matching = [name for name in times if name.lower() == named.lower()]
        if not matching:
            raise DefinitionError(f"--time {named}: {output.alias} has no such column of type datetime")
        return matching[0]
    candidates = [name for name in times if name in compiled.group_columns] or times
    if len(candidates) != 1:
        if not candidates:
            raise DefinitionError(
                f"{output.alias} has no column of type datetime: add the end of a row's window, System.Timestamp(), to "
                "the query"
            )
        raise DefinitionError(f"choose the column with the end of a row's window with --time: {', '.join(candidates)}")
    return candidates[0]


def compare(
    connection: "DuckDBPyConnection",
    comparison: Comparison,
    address: str,
    trials: Trials,
    compute: Compute,
    folder: Path,
) -> dict[str, Any]:
    """Return the document of a comparison. Raise DefinitionError if the output of the live job cannot be read."""
    connection.execute("SET TimeZone = 'UTC'")
    slices = comparison.slices
    layout = Layout(
        comparison.columns,
        comparison.live_names,
        comparison.time,
        ticks.to_datetime(slices[0].start),
        ticks.to_datetime(slices[-1].end),
        slice_length(comparison.pipeline) // ticks.TICKS_PER_SECOND,
    )
    live = read_live(connection, address, layout, folder)
    columns = tuple(column for column in comparison.columns if column.name not in live.missing)
    compared = Compared(columns, tuple(name for name in comparison.key if name not in live.missing))
    published, unpublished = [], []
    for start, entry in comparison.entries.items():
        file = entry.current and entry.current.files.get(comparison.output.alias)
        if file:
            published.append(StoredFile(comparison.output.table, file))
        else:
            unpublished.append(start)
    ours = rows_of(published, folder / "published", layout, columns)
    reasons = Reasons(connection, compared, ours, _lacks_events(comparison, compared))
    time, downtimes = comparison.time, comparison.stopped
    tried: dict[str, Sequence[Assumption]] = {}
    warnings = list(live.warnings)
    refused: list[set[Assumption]] = []
    if reasons.open_slices():
        cuts = [ticks.from_datetime(end) for end in reasons.live_ends(time)]
        assumptions = trials.assumptions(comparison.downtimes, cuts)
        for number, combination in enumerate(combinations_of(assumptions)):
            if not are_known(combination):
                reasons.explain_missing(time, downtimes)
            trial = trial_of(combination)
            since = trial.restart
            open_slices = [
                slice_
                for slice_ in map(comparison.by_number.__getitem__, reasons.open_slices())
                if since is None or ticks.from_datetime(since) < slice_.end
            ]
            if open_slices and not any(guesses <= {*combination} for guesses in refused):
                reason = reason_of(combination)
                guessed = frozenset(guess for guess in combination if not guess.is_known or guess.setting == "restart")
                try:
                    files = trials.files(trial, open_slices, compute)
                except RunError as error:
                    guesses = {assumption for assumption in combination if not assumption.is_known}
                    if not guesses:
                        raise
                    refused.append(guesses)
                    warnings.append(f"{words(reason)} was not tried, because it cannot be computed: {error}")
                    continue
                rows = rows_of(files, folder / f"tried-{number}", layout, columns)
                reasons.explain(
                    reason, rows, list(map(number_of, open_slices)), time, since, guessed, trial.session_offset
                )
                tried[reason] = combination
    silences = reasons.silences(time, ours)
    for stop, restart in [*downtimes, *silences]:
        reasons.explain_downtime(time, stop, restart, comparison.reach)
    reasons.choose_guesses()
    reasons.explain_holes()
    findings = _Findings(live, ours, unpublished, reasons, tried, silences, warnings)
    examples = list(reasons.examples(ours, MAX_EXAMPLES))
    return _document(comparison, address, findings) | {
        "examples": _with_events(examples, comparison, compared, trials, tried)
    }


def rows_of(files: Iterable[StoredFile], folder: Path, layout: Layout, columns: Sequence[OutputColumn]) -> str:
    """Copy files into a folder, and return the query of their rows in the range, with SLICE and our types."""
    folder.mkdir()

    def fetch(numbered: tuple[int, StoredFile]) -> None:
        number, stored = numbered
        content = stored.content()
        if content is None:
            raise RunError(
                f"{stored.file.path} in {stored.table} is gone or damaged: backfill its slice again before comparing"
            )
        (folder / f"{number}.parquet").write_bytes(content)

    in_parallel(fetch, enumerate(files))
    empty = ", ".join(f"NULL::{TYPES[column.type]} AS {quoted(column.name)}" for column in layout.columns)
    place = "'" + str(folder / "*.parquet").replace("'", "''") + "'"
    stored = f" UNION ALL BY NAME SELECT * FROM read_parquet({place}, union_by_name = true)"
    rows = f"SELECT {empty} WHERE false{stored if any(folder.iterdir()) else ''}"
    selected = ", ".join(
        f"{normal(column, f'{quoted(column.name)}::{TYPES[column.type]}')} AS {quoted(column.name)}"
        for column in columns
    )
    return f"SELECT {layout.slice_number} AS {SLICE}, {selected} FROM ({rows}) WHERE {layout.in_range}"


def _document(comparison: Comparison, address: str, findings: _Findings) -> dict[str, Any]:
    by_number, live, reasons = comparison.by_number, findings.live, findings.reasons
    counts = reasons.counts()
    keys = reasons.keys(findings.ours)
    by_reason: dict[str, dict[str, int]] = {}
    by_slice: dict[str, dict[str, int]] = {}
    for number, reason, changed, only_live, only_ours in counts:
        total = by_reason.setdefault(reason, {"rows": 0, "changed": 0, "only_live": 0, "only_ours": 0})
        values = {"changed": changed, "only_live": only_live, "only_ours": only_ours}
        for name, count in ({"rows": sum(values.values())} | values).items():
            total[name] += count
        start = ticks.to_text(by_number[number].start)
        by_slice.setdefault(start, {})[words(reason)] = sum(values.values())
    different = sum(total["rows"] for total in by_reason.values())
    names = [column.name for column in reasons.compared.columns]
    names = [*reasons.compared.key, *(name for name in names if name not in reasons.compared.key)]
    only_keys = bool(live.missing) and len(names) == len(reasons.compared.key)
    is_explained = UNEXPLAINED not in by_reason and live.rows > 0 and not only_keys
    return {
        "pipeline": comparison.pipeline.name,
        "output": comparison.output.alias,
        "live": address,
        "from": ticks.to_text(comparison.slices[0].start),
        "to": ticks.to_text(comparison.slices[-1].end),
        "key": list(reasons.compared.key),
        "files": live.files,
        "live_rows": live.rows,
        "rows": keys,
        "equal": keys - different,
        "different": different,
        "explained": is_explained,
        "tried": [*map(words, findings.tried)],
        "reasons": [
            {"reason": words(reason), "causes": causes(reason), **total, "share": total["rows"] / keys}
            for reason, total in sorted(by_reason.items(), key=lambda item: (-item[1]["rows"], item[0]))
        ],
        "by_slice": [
            {"slice_start": start, "reasons": counts_by_reason} for start, counts_by_reason in by_slice.items()
        ],
        "silences": [
            {"after": ticks.text_of(after), "before": ticks.text_of(before)} for after, before in findings.silences
        ],
        "missing_columns": list(live.missing),
        "unpublished": list(findings.unpublished),
        "example_columns": names,
        "warnings": list(findings.warnings),
        "version": __version__,
        "exit_code": 0 if is_explained else DIFFERENT,
    }


def _with_events(
    rows: Sequence[tuple[str, int, str, Mapping[str, Any]]],
    comparison: Comparison,
    compared: Compared,
    trials: Trials,
    tried: Mapping[str, Sequence[Assumption]],
) -> list[dict[str, Any]]:
    """Return the rows of examples in JSON types. The first row of a difference names its events."""
    names = [*compared.key, *(column.name for column in compared.columns if column.name not in compared.key)]
    examples: list[dict[str, Any]] = []
    by_reason: dict[str, dict[tuple[Any, ...], tuple[Example, dict[str, Any]]]] = {}
    for reason, number, side, row in rows:
        slice_ = comparison.by_number[number]
        example: dict[str, Any] = {
            "reason": words(reason),
            "slice_start": ticks.to_text(slice_.start),
            "side": side,
            "values": [value_text(row[name], 17) for name in names],
            "events": [],
        }
        examples.append(example)
        keys = {name: row[name] for name in compared.key if name != comparison.time}
        identity = row[comparison.time], *keys.values()
        if len(by_reason.setdefault(reason, {})) < MAX_EXAMPLES_WITH_EVENTS:
            by_reason[reason].setdefault(identity, (Example(slice_, row[comparison.time], keys), example))
    rows_with_events: list[tuple[tuple[Trial, Example], dict[str, Any]]] = []
    for reason, by_key in by_reason.items():
        assumed = SEPARATOR.join(cause for cause in causes(reason) if cause not in (DUPLICATES, DIGITS))
        combination = tried.get(assumed)
        if combination is not None and changes_events(combination):
            trial = trial_of(combination)
            rows_with_events += [((trial, row), example) for row, example in by_key.values()]
    events_of_rows = events_behind(trials, [row for row, _ in rows_with_events], comparison.reach)
    for (_, example), events in zip(rows_with_events, events_of_rows, strict=True):
        example["events"] = events
    return examples


def number_of(slice_: Slice) -> int:
    """Return the number of a slice, as SLICE has it."""
    return (slice_.start - ticks.UNIX_EPOCH) // (slice_.end - slice_.start)


def _lacks_events(comparison: Comparison, compared: Compared) -> str:
    """Return the condition, in SQL, of the keys whose rows depend on events that the archive lacks.

    If the key has no time, these are all keys of a slice.
    """
    ranges = incomplete_ends(comparison.pipeline, comparison.slices, comparison.late_seconds)
    if comparison.time in compared.key:
        conditions = [ends_in(comparison.time, *map(ticks.to_datetime, (ends.start, ends.end))) for ends in ranges]
    else:
        conditions = [
            f"{SLICE} = {number}"
            for number, slice_ in comparison.by_number.items()
            if any(ends.start < slice_.end and slice_.start < ends.end for ends in ranges)
        ]
    return " OR ".join(["false", *conditions])
