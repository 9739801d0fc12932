"""Operations with a constant that each row computes: the rows with one value of it are computed together."""

from collections.abc import Callable
from typing import Any

import numpy as np

from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.vectors import Vector


def by_value(kernel: Kernel, parameter: Callable[[Any], Any]) -> Kernel:
    """Return the kernel of an operation whose last argument is the constant; NULL where it is NULL.

    `parameter` returns the parameter of `kernel` for a value of the constant.
    """

    def computed(frame: Frame, node: Node) -> Vector:
        *arguments, constant = node.arguments
        values = frame.array(constant).dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(values.dictionary) + 1))
        parts = [
            (
                frame.of_rows(order[ends[code] : ends[code + 1]]),
                Node(kernel, tuple(arguments), node.type, (parameter(value),)),
            )
            for code, value in enumerate(values.dictionary.to_pylist())
        ]
        return frame.scattered(parts, node.type)

    return computed
