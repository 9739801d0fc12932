"""Errors that a user can act on. Each message says what is wrong, where, and what to do."""

from typing import Self

from recapture.printable import printable


class RecaptureError(Exception):
    """A failure that its message explains fully: the command prints the message, without a traceback.

    The message may name devices, fields and blobs: as a string, it shows their control characters escaped.
    """

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class DefinitionError(RecaptureError):
    """A mistake in a pipeline file, query, suite, argument or installation.

    It is reported before any blob is read, except by `infer --write`, which reads a sample first, and for a suite by a
    backfill without Spark, which loads Great Expectations while the tasks run. Nothing is published.
    """

    exit_code = 2


class RunError(RecaptureError):
    """A run that cannot continue: a damaged or modified blob, unreachable storage, a commit that lost a race."""


class SetupError(RunError):
    """A mistake in the set-up, such as a missing folder or permission, or blob names that do not match the input."""


class PermanentError(RunError):
    """A run that trying again cannot cure: something must be restored, corrected or planned anew first."""


class FormatError(PermanentError):
    """A file that another version of Recapture wrote, in a format that this version does not read."""


class DamagedBlobError(PermanentError):
    """A blob that cannot be read whole."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"blob {name} is damaged: {reason}; restore it from a backup or remove it, then plan again, or quarantine "
            "it with input.on_damaged_blob: quarantine"
        )
        self.reason = reason


class QueryError(RunError):
    """A query that has no result, such as for a value, or because a function exceeds its limits."""

    def __init__(self, reason: str, places: tuple[str, ...] = ()) -> None:
        where = f" for {', '.join(places)}" if places else ""
        super().__init__(f"the query failed{where}: {reason}")
        self._reason, self._places = reason, places

    def inside(self, place: str) -> Self:
        """Return the error with a place that has the other ones, such as a slice."""
        return type(self)(self._reason, (place, *self._places))


class AuditError(RecaptureError):
    """A run that was stopped by its audit: nothing was published."""


class UnfinishedError(RunError):
    """A run or rollback that may already be visible in a table, but is not finished or not reported: run it again."""

    exit_code = 3


class ClosedOutputError(UnfinishedError):
    """Standard output whose reader, such as `head`, has ended. A command that changed nothing ends silently."""

    exit_code = 141
    """Exit code of a program that SIGPIPE ends."""


class InterruptedRunError(RecaptureError):
    """A run or rollback that was interrupted from the keyboard; the message or `recapture status` says what changed."""

    exit_code = 130
