"""What a user can do something about, each told in one line: what is wrong, where, and what to do."""


class RecaptureError(Exception):
    """A failure whose message is the whole story: the command prints it as one line, without a traceback."""

    exit_code = 1


class DefinitionError(RecaptureError):
    """A mistake in a pipeline file, a query, a suite or the arguments; found before anything is read."""

    exit_code = 2


class RunError(RecaptureError):
    """A run that could not go on: a damaged or touched blob, storage out of reach, a commit that lost a race."""


class AuditError(RecaptureError):
    """A run that was stopped by its audit: nothing was published."""
