"""Errors that a user can act on. Each message is one line: what is wrong, where, and what to do."""


class RecaptureError(Exception):
    """A failure whose message is the whole story: the command prints it as one line, without a traceback."""

    exit_code = 1


class DefinitionError(RecaptureError):
    """A mistake in a pipeline file, a query, a suite or the arguments; reported before anything is read."""

    exit_code = 2


class RunError(RecaptureError):
    """A run that could not go on: a damaged or touched blob, storage out of reach, a commit that lost a race."""


class SetupError(RunError):
    """A container, a folder or a right that is missing, or blobs of other names: somebody has to change the set-up."""


class DamagedBlobError(RunError):
    """A blob that is not a whole Capture file."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"blob {name} is damaged: {reason}; restore it from a copy or remove it, then plan again, or set it aside "
            "with input.on_damaged_blob: quarantine"
        )
        self.reason = reason


class AuditError(RecaptureError):
    """A run that was stopped by its audit: nothing was published."""


class UnfinishedError(RunError):
    """A run or a rollback that shows in a table already, but is not finished: running it again finishes it."""

    exit_code = 3


class InterruptedRunError(RecaptureError):
    """A run or a rollback that was interrupted from the keyboard; the message says how far it got."""

    exit_code = 130
