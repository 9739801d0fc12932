"""Each fault of the storage at each kind of request of the command."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.command import Held, Storage, shown
from tests.storage.fault_proxy import (
    Fault,
    FaultProxy,
    answered,
    cut,
    edited,
    forgotten,
    lost,
    overstated,
    portal,
    reset,
)

AT_ONCE = 2
"""Number of commands that run side by side."""
ONCE, ALWAYS = 1, None
AT = {
    "list the archive": ("list", "^capture"),
    "read a blob": ("read", r"^capture/.*\.avro$"),
    "write a run file": ("write", r"/_recapture/.*/counters/"),
    "stage rows": ("write", r"telemetry/slice_start=.*\.parquet$"),
    "create a table": ("write", r"_delta_log/0{20}\.json$"),
    "commit to the publications": ("write", r"telemetry_publications/_delta_log/0{19}1\.json$"),
    "commit to the rows": ("write", r"telemetry/_delta_log/0{19}1\.json$"),
    "commit to the metrics": ("write", r"telemetry_metrics/_delta_log/0{19}1\.json$"),
}
WRITING: dict[str, tuple[Fault, int | None]] = {
    "500 once": (answered(500, "InternalError"), ONCE),
    "500 always": (answered(500, "InternalError"), ALWAYS),
    "503 once": (answered(503, "ServerBusy", Retry_After="1"), ONCE),
    "403": (answered(403, "AuthorizationPermissionMismatch"), ALWAYS),
    "404": (answered(404, "ContainerNotFound"), ALWAYS),
    "409 always": (answered(409, "BlobAlreadyExists"), ALWAYS),
    "412 always": (answered(412, "ConditionNotMet"), ALWAYS),
    "reset once": (reset, ONCE),
    "answer lost once": (lost, ONCE),
    "acknowledged and forgotten once": (forgotten, ONCE),
}
READING: dict[str, tuple[Fault, int | None]] = {
    **{name: WRITING[name] for name in ("500 once", "500 always", "403", "404", "reset once")},
    "a page of the network once": (portal(), ONCE),
    "cut once": (cut(0.5), ONCE),
    "cut always": (cut(0.5), ALWAYS),
    "half, consistent length": (edited(lambda body: body[: len(body) // 2], "content-md5"), ALWAYS),
    "too short for its length": (overstated(100), ALWAYS),
    "a byte changed": (edited(lambda body: body[:-40] + b"\xff" + body[-39:]), ALWAYS),
}


def table(storage: Storage, expected: Held) -> Iterator[str]:
    """Yield a row for each fault at each kind of request; a run that published everything is not run again."""
    yield "| at | fault | exit | message | published then | rerun |"
    yield "|---|---|---|---|---|---|"
    cases = [
        (at, name, fault, times)
        for at, (operation, _) in AT.items()
        for name, (fault, times) in (READING if operation in ("list", "read") else WRITING).items()
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda case: _row(storage, expected, *case), cases)


def _row(storage: Storage, expected: Held, at: str, name: str, fault: Fault, times: int | None) -> str:
    operation, path = AT[at]
    target = storage.new_table()
    with FaultProxy(storage.azurite) as proxy:
        proxy.inject(fault, operation, path, times=times)
        outcome = storage.run(target, proxy)
        met = proxy.requested(operation, path)
        message = outcome.line.replace(proxy.url, "URL").replace("|", "\\|")
    held = storage.held(target)
    then = shown(held, expected) if met else "the fault was not met"
    if outcome.code == 0 and held == expected:
        return f"| {at} | {name} | 0 | {message} | {then} | |"
    again = storage.run(target, storage.azurite)
    equal = "equal" if storage.held(target) == expected else "DIFFERENT"
    return f"| {at} | {name} | {outcome.code} | {message} | {then} | {again.code}, {equal} |"
