"""The format of what Recapture writes for itself: manifests, run files and publications.

Every such file says its format, and every digest covers it. A reader refuses another format instead of guessing: a
newer one needs a newer Recapture, an older one is written again by planning the range again.
"""

from recapture.errors import RunError

FORMAT = 2
"""Raise it whenever an older or newer reader would misread a file."""


def require_format(number: object, what: str) -> None:
    """Raise RunError unless `number` is FORMAT; `what` names the file in the message."""
    if number == FORMAT:
        return
    if isinstance(number, int) and number > FORMAT:
        raise RunError(f"{what} has format {number}, and this version of Recapture reads {FORMAT}: use a newer version")
    raise RunError(f"{what} has a format older than {FORMAT}, which this version reads: plan the range again")
