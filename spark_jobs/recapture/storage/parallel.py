"""Call a function for several items at once: for small blobs, the wait for the response takes the most time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the result of a call for every item, in the order of the items. Raise the error of the first failure."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(call, items))
