"""Small blobs take longer to ask for than to send, so they are read and written several at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return what a call returns for each item, in their order. Raises what the first failing call raises."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(call, items))
