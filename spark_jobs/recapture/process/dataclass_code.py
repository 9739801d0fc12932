"""Keep what Python compiles when it defines dataclasses for the next command. See also `startup`.

For each dataclass, Python writes the source code of its methods and compiles it. A backfill defines 380 dataclasses.
"""

import dataclasses
import marshal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

from recapture.process import caches

_MOST = 10_000
"""Number of sources above which the file starts anew, as most are then of earlier versions. A backfill has 1,900."""


@contextmanager
def kept_code() -> Iterator[None]:
    """Let dataclasses that are defined in this context take their code from this user's caches: 0.25 s of a backfill.

    Code that is not there is compiled, and kept in the end. It is found by its source, so it is never out of date.
    """
    folder = caches.user_folder("dataclasses")
    if folder is None:
        yield
        return
    file = folder / f"{MAGIC_NUMBER.hex()}.code"
    content = caches.read(file)
    kept: dict[str, CodeType] = {} if content is None else marshal.loads(content)
    used: dict[str, CodeType] = {}

    def execute(source: str, *scopes: dict[str, Any]) -> None:
        used[source] = kept.get(source) or compile(source, "<string>", "exec", dont_inherit=True)
        exec(used[source], *scopes)

    vars(dataclasses)["exec"] = execute  # what the module calls instead of the built-in function
    try:
        yield
    finally:
        del vars(dataclasses)["exec"]
    if not used.keys() <= kept.keys():
        both = kept | used
        caches.write(file, marshal.dumps(both if len(both) <= _MOST else used))
