"""Each fault of the storage at each kind of request of the command."""

from collections.abc import Iterator

from tests.chaos.command import Held, Storage, shown
from tests.storage.fault_proxy import Fault, answered, cut, edited, lost, overstated, reset

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
}
READING: dict[str, tuple[Fault, int | None]] = {
    **{name: WRITING[name] for name in ("500 once", "500 always", "403", "404", "reset once")},
    "cut once": (cut(0.5), ONCE),
    "cut always": (cut(0.5), ALWAYS),
    "half, consistent length": (edited(lambda body: body[: len(body) // 2], "content-md5"), ALWAYS),
    "too short for its length": (overstated(100), ALWAYS),
    "a byte changed": (edited(lambda body: body[:-40] + b"\xff" + body[-39:]), ALWAYS),
}


def table(storage: Storage, whole: Held) -> Iterator[str]:
    """Yield a row for each fault at each kind of request."""
    yield "| at | fault | exit | message | published then | rerun |"
    yield "|---|---|---|---|---|---|"
    for at, (operation, path) in AT.items():
        for name, (fault, times) in (READING if operation in ("list", "read") else WRITING).items():
            target = storage.new_table()
            storage.proxy.inject(fault, operation, path, times=times)
            outcome = storage.run(target)
            met = storage.proxy.requested(operation, path)
            storage.proxy.clear()
            then = shown(storage.held(target), whole) if met else "the fault was not met"
            again = storage.run(target)
            equal = "equal" if storage.held(target) == whole else "DIFFERENT"
            message = outcome.line.replace(storage.proxy.url, "URL").replace("|", "\\|")
            yield f"| {at} | {name} | {outcome.code} | {message} | {then} | {again.code}, {equal} |"
