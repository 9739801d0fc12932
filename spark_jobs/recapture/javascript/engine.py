"""JavaScript functions in V8. A function sees only its arguments: no clock, no random numbers, no input or output.

Each process has one V8 context for each function. Python enters it once for a batch of rows or events. Inside, the
script runs anew for every row, or for every window of an aggregate, so that a result depends on the arguments alone.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
from py_mini_racer import JSEvalException, JSFunction, JSMappedObject, JSParseException, JSTimeoutException, MiniRacer

from recapture.errors import DefinitionError, RunError
from recapture.javascript.columns import batch, event_batch, results
from recapture.model import JavaScriptFunction
from recapture.process.environment import environment

BATCH_ROWS = 10_000
BATCH_BYTES = 8 * 1024 * 1024
"""Largest size of the arguments of a batch, unless one row is larger."""
TIME_LIMIT = 60
"""Longest time that a batch may take, in seconds."""
MEMORY_LIMIT = 512 * 1024 * 1024
"""Largest heap of a V8 context, in bytes."""
_MAY_DEFER = re.compile(r"(?i:async)|await|import|Promise|then")
"""What a script has if it can do something after a call. V8 does that after each batch."""
_LOCALE = {"TZ": "UTC", "LC_ALL": "en_US.UTF-8"}
"""Environment variables from which V8 takes its time zone and its language."""


@dataclass(frozen=True)
class BatchLimits:
    """Limits of the calls of one batch."""

    seconds: float = TIME_LIMIT
    memory: int = MEMORY_LIMIT


DEFAULT = BatchLimits()


class V8Engine:
    """One function, compiled in its own V8 context."""

    def __init__(self, function: JavaScriptFunction, limits: BatchLimits = DEFAULT) -> None:
        """Compile the function. Raise DefinitionError if its script has an error, or is not a function of its kind."""
        self.function, self.limits = function, limits
        with environment(**_LOCALE):
            self._context = MiniRacer()
            runtime = self._context.eval(f"{_script('runtime.js')}({json.dumps(_script('builtins.js'))})")
        assert isinstance(runtime, JSMappedObject)
        self._runtime = runtime
        self._context.set_hard_memory_limit(limits.memory)
        described = (function.name, function.script, function.output.value, function.is_aggregate)
        failure = self._limited("compile", *described)
        if failure is not None:
            raise DefinitionError(f"the script of {function.called_as} cannot run: {self._syntax_error() or failure}")

    def call(self, columns: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array]:
        """Return the function's value for each row, and its error, null for the rows without one.

        A row of an aggregate is a window: the list of its events, and its group. Raise RunError if the function exceeds
        its limits.
        """
        parts = self._aggregated(*columns) if self.function.is_aggregate else self._called(columns, rows)
        values: list[pa.Array] = []
        errors: dict[int, str] = {}
        for first, returned in parts:
            part, failed = results(str(returned), self.function.output)
            values.append(part)
            errors |= {first + row: f"{self.function.called_as}: {text}" for row, text in failed.items()}
        return pa.concat_arrays(values), pa.array([errors.get(row) for row in range(rows)], pa.string())

    def _called(self, columns: Sequence[pa.Array], rows: int) -> Iterator[tuple[int, object]]:
        """Yield the first row of each batch, and what V8 returns for the batch."""
        for start, count in _batches(columns, rows):
            yield start, self._limited("run", batch(columns, start, count))

    def _aggregated(self, windows: pa.ListArray, groups: pa.StructArray) -> Iterator[tuple[int, object]]:
        """Yield the first window of each batch of events, and what V8 returns for the windows that end in the batch."""
        columns = windows.flatten().flatten()
        ends = np.cumsum(windows.value_lengths().to_numpy())
        most = 1 if _MAY_DEFER.search(self.function.script) else BATCH_ROWS
        for start, count in _batches(columns, len(columns[0]), most):
            first, after = np.searchsorted(ends, (start, start + count), side="right")
            lasts = (ends[first:after] - start - 1).tolist()
            events = event_batch(columns, start, count, lasts, groups.slice(first, after - first + 1))
            yield int(first), self._limited("aggregate", events)

    def _call(self, method: str, seconds: float, *arguments: str | bool) -> object:
        function = self._runtime[method]
        assert isinstance(function, JSFunction)
        return function(*arguments, timeout_sec=seconds)

    def _syntax_error(self) -> str | None:
        """Return the first syntax error of the script, with its line; None if it has none."""
        try:
            self._context.eval(f"(function () {{{self.function.script}\n}})")
        except JSParseException as error:
            found = re.match(r".*?:(\d+): (.*)", str(error))
            return f"{found[2]} (line {found[1]})" if found else None
        return None

    def _last_arguments(self) -> str:
        """Return a text with the arguments of the call that was stopped; empty if V8 cannot tell."""
        with contextlib.suppress(JSEvalException):
            self._context.set_hard_memory_limit(0)
            return f"; {self._call('lastArguments', 1)}"
        return ""

    def _limited(self, method: str, *arguments: str | bool) -> object:
        try:
            return self._call(method, self.limits.seconds, *arguments)
        except JSEvalException as error:
            if isinstance(error, JSTimeoutException):
                reason = f"took more than {self.limits.seconds:g} seconds for a batch of calls: simplify its script"
            elif self._context.was_hard_memory_limit_reached():
                reason = f"needs more than {self.limits.memory // 1024**2} MiB of memory: simplify its script"
            else:
                reason = f"failed: {str(error).splitlines()[0]}"
            raise RunError(f"{self.function.called_as} {reason}{self._last_arguments()}") from error


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _batches(columns: Sequence[pa.Array], rows: int, most: int = BATCH_ROWS) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each batch, which has `most` rows or fewer."""
    size = sum(column.nbytes for column in columns)
    step = max(1, min(most, BATCH_BYTES * rows // max(size, 1)))
    for start in range(0, rows, step):
        yield start, min(step, rows - start)


@lru_cache(maxsize=64)
def engine(function: JavaScriptFunction) -> V8Engine:
    """Return this process's engine of a function. Raise DefinitionError if its script cannot run."""
    return V8Engine(function)
