"""JavaScript functions in V8. A function sees its arguments and nothing else: no clock, no chance, no input or output.

Each process has one V8 context for each function. Python enters it once for a batch of rows. Inside, the script runs
anew for every row, so that a result depends on the arguments alone.
"""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import pyarrow as pa
from py_mini_racer import (
    JSEvalException,
    JSFunction,
    JSMappedObject,
    JSParseException,
    JSTimeoutException,
    MiniRacer,
)

from recapture.environment import environment
from recapture.errors import DefinitionError, RunError
from recapture.javascript.columns import batch, results
from recapture.model import JavaScriptFunction

BATCH_ROWS = 10_000
BATCH_BYTES = 8 * 1024 * 1024
"""Largest size of the arguments of a batch, unless one row is larger."""
TIME_LIMIT = 60
"""Longest time that a batch may take, in seconds."""
MEMORY_LIMIT = 512 * 1024 * 1024
"""Largest heap of a V8 context, in bytes."""
_PLACE = {"TZ": "UTC", "LC_ALL": "en_US.UTF-8"}
"""Environment variables from which V8 takes its time zone and its language."""


@dataclass(frozen=True)
class BatchLimits:
    """Limits of the calls of one batch."""

    seconds: float = TIME_LIMIT
    memory: int = MEMORY_LIMIT


DEFAULT = BatchLimits()


class Engine:
    """One function, compiled in a V8 context of its own."""

    def __init__(self, function: JavaScriptFunction, limits: BatchLimits = DEFAULT) -> None:
        """Compile the function. Raise DefinitionError if its script has an error or is not a function."""
        self.function, self.limits = function, limits
        with environment(**_PLACE):
            self._context = MiniRacer()
            runtime = self._context.eval(files(__package__).joinpath("runtime.js").read_text(encoding="utf-8"))
        assert isinstance(runtime, JSMappedObject)
        self._runtime = runtime
        self._context.set_hard_memory_limit(limits.memory)
        failure = self._limited("compile", function.name, function.script, function.output.value)
        if failure is not None:
            raise DefinitionError(f"the script of udf.{function.name} cannot run: {self._syntax_error() or failure}")

    def call(self, columns: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array]:
        """Return the function's value for each row, and its error, null for the rows without one.

        Raise RunError if the function exceeds its limits.
        """
        size = sum(column.nbytes for column in columns)
        step = max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(size, 1)))
        values: list[pa.Array] = []
        errors: dict[int, str] = {}
        for start in range(0, rows, step):
            returned = self._limited("run", batch(columns, start, min(step, rows - start)))
            part, failed = results(str(returned), self.function.output)
            values.append(part)
            errors |= {start + row: f"udf.{self.function.name}: {text}" for row, text in failed.items()}
        return pa.concat_arrays(values), pa.array([errors.get(row) for row in range(rows)], pa.string())

    def _call(self, method: str, seconds: float, *arguments: str) -> object:
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

    def _limited(self, method: str, *arguments: str) -> object:
        try:
            return self._call(method, self.limits.seconds, *arguments)
        except JSEvalException as error:
            if isinstance(error, JSTimeoutException):
                reason = f"took more than {self.limits.seconds:g} seconds for a batch of calls: simplify its script"
            elif self._context.was_hard_memory_limit_reached():
                reason = f"needs more than {self.limits.memory // 1024**2} MiB of memory: simplify its script"
            else:
                reason = f"failed: {str(error).splitlines()[0]}"
            raise RunError(f"udf.{self.function.name} {reason}{self._last_arguments()}") from error


@lru_cache(maxsize=64)
def engine(function: JavaScriptFunction) -> Engine:
    """Return this process's engine of a function. Raise DefinitionError if its script cannot run."""
    return Engine(function)
