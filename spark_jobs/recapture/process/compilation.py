"""Decorators for functions that Numba compiles. Callers import and call such functions like any other.

Numba is imported, and a function compiled, when it is first called: `recapture plan` does neither.
"""

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

_N = TypeVar("_N", bound=np.generic)
_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function. Operations on floats keep their order; division by zero gives an infinity or NaN."""
    return cast(_F, Compiled(function))


def inlined(function: _F) -> _F:
    """Compile a function into those that call it, as a call would cost more than it. From Python, it runs as Python."""
    return cast(_F, _Inlined(function))


def read_only(buffer: Any, type_: type[_N]) -> NDArray[_N]:
    """Return a buffer, or None, as an array: read-only, as Numba compiles a function once more for one that is not."""
    array = np.frombuffer(buffer or b"", type_)
    array.flags.writeable = False
    return array


def frozen(values: NDArray[_N]) -> NDArray[_N]:
    """Return a read-only view of an array, for the same reason."""
    view = values.view()
    view.flags.writeable = False
    return view


class Compiled:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Any) -> None:
        self._function: FunctionType = function
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function. Decorated functions that it calls have theirs in its globals."""
        from recapture.process import numba_functions

        function = self._function
        names = {**function.__globals__}
        own = FunctionType(function.__code__, names, function.__name__)
        is_inlined = isinstance(self, _Inlined)
        dispatcher = numba_functions.inlined(own) if is_inlined else numba_functions.compiled(own, self.files)
        for name, called in self._called.items():
            names[name] = dispatcher if called is self else called.dispatcher
        return dispatcher

    @cached_property
    def files(self) -> frozenset[str]:
        """Files with the code of this function and of those that it calls."""
        others = (called.files for called in self._called.values() if called is not self)
        return frozenset([self._function.__code__.co_filename]).union(*others)

    @cached_property
    def _called(self) -> dict[str, "Compiled"]:
        """Decorated functions that this one calls, by name."""
        names = self._function.__globals__
        called = {name: names.get(name) for name in self._function.__code__.co_names}
        return {name: value for name, value in called.items() if isinstance(value, Compiled)}


class _Inlined(Compiled):
    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)
