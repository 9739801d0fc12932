"""Keep updates from computing a range while another run computes it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from uuid import uuid4

from recapture.errors import RunError
from recapture.keep.claims import LEASE, hold, release, renew
from recapture.run_files.work import WORK
from recapture.storage import Container
from recapture.time_model import ticks


def present() -> int:
    """Return the time of the clock, in ticks."""
    return ticks.from_datetime(datetime.now(UTC))


@contextmanager
def renewing(run_files: Container, id: str, clock: Callable[[], int] = present) -> Iterator[None]:
    """Renew the leases of an update or a backfill, at once and then now and then, in another thread."""
    is_done = threading.Event()

    def renew_leases() -> None:
        while True:
            with suppress(RunError):  # if the lease ends, an update may compute the same, which does no harm
                WORK.change(run_files, lambda work: renew(work, id, clock()))
            if is_done.wait(LEASE / ticks.TICKS_PER_SECOND / 4):
                return

    thread = threading.Thread(target=renew_leases, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


@contextmanager
def holding(run_files: Container, start: int, end: int) -> Iterator[None]:
    """Keep updates from computing a range, given in ticks. Raise RunError if this cannot be written."""
    id = uuid4().hex
    WORK.change(run_files, lambda work: hold(work, id, start, end, present()))
    try:
        with renewing(run_files, id):
            yield
    finally:
        with suppress(RunError):  # otherwise the lease ends by itself
            WORK.change(run_files, lambda work: release(work, id))
