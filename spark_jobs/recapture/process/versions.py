"""The format of what Recapture writes for itself: manifests, run files and publications; and of JSON for programs.

Every such file says its format. A reader refuses another format instead of guessing: a newer one needs a newer
Recapture, an older one is written again by planning the range again. Raise a number whenever an older or newer reader
would misread a file.
"""

from recapture.errors import FormatError

MANIFEST_FORMAT = 4
"""Format of manifests; every digest covers it."""
FORMAT = 3
"""Format of the other run files."""
APART_FORMAT = 4
"""Format of the record of requests while one of them names some slices of its range: a version that knows only FORMAT
would compute the whole range."""
PUBLICATIONS_FORMAT = 1
"""Format of publications, which stay readable when a manifest or a run file changes."""
PROFILE_FORMAT = 1
"""Format of the profile of a run, which only its report reads."""
INDEX_FORMAT = 1
"""Format of the index of a run. Notes of another format are not used: their blobs are read."""

OUTPUT_FORMAT = 1
"""Format of the objects that commands print with --json. Raise it if a key is removed or means something else."""


def require_format(number: object, known: int, what: str) -> None:
    """Raise FormatError unless `number` is the format that this version knows; `what` names the file in the message."""
    if number == known:
        return
    if isinstance(number, int) and number > known:
        raise FormatError(
            f"{what} has format {number}, and this version of Recapture reads {known}: use a newer version"
        )
    raise FormatError(f"{what} has a format older than {known}, which this version reads: plan the range again")
