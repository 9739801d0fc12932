"""Kernels of tokens: those of numbers, and their order."""

import pyarrow as pa
import pyarrow.compute as pc

from recapture import tokens
from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.vectors import Vector, from_arrow


def of_bigints(frame: Frame, node: Node) -> Vector:
    return tokens.of_texts(frame.array(node.arguments[0]).cast(pa.string()))


def of_floats(frame: Frame, node: Node) -> Vector:
    """Return the tokens of floats; one that is not finite equals no value of a body."""
    floats = frame.array(node.arguments[0])
    finite = pc.is_finite(floats)
    texts = tokens.float_texts(pc.if_else(finite, floats, None))
    return tokens.of_texts(pc.if_else(finite, texts, floats.cast(pa.string())))


def in_order(frame: Frame, node: Node) -> Vector:
    left, right = (frame.array(argument) for argument in node.arguments)
    return from_arrow(tokens.in_order(str(node.parameters[0]), left, right))
