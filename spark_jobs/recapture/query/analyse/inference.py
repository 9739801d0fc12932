"""Types by use: a script is compiled again until its uses tell nothing new about its fields."""

from collections.abc import Callable
from typing import TypeVar

from recapture.query.analyse.field_types import FieldTypes
from recapture.query.parse.names import Path

T = TypeVar("T")

Requests = dict[str, dict[Path, None]]
"""Columns of a step's * that later steps use, in order, by the step's name in lower case."""


def compile_until_settled(
    types: FieldTypes, requests: Requests, compile_script: Callable[[], T], most_passes: int
) -> T:
    """Compile a script until a pass learns nothing new, and return what the last pass compiled.

    Each pass knows the types, and the columns of each *, that earlier passes asked for. For example:

        WITH a AS (SELECT x AS v, y FROM input) SELECT v, y INTO output FROM a WHERE v = y AND y > 1

        pass 1: `v = y` tells nothing yet; `y > 1` makes y a float
        pass 2: `v = y` makes x a float
        pass 3: learns nothing
        pass 4: the last, in which no field is open: a field whose type no use decides is nvarchar(max)

    Raise DefinitionError if `most_passes` passes are not enough.
    """
    for _ in range(most_passes):
        before = _learnt(types, requests)
        result = compile_script()
        settled = _learnt(types, requests) == before
        if settled and types.closed:
            return result
        types.closed = settled
    raise types.source.error(0, "the uses of the fields do not settle their types: declare them with CREATE TABLE")


def _learnt(types: FieldTypes, requests: Requests) -> object:
    return types.state(), len(types.kinds), {step: len(paths) for step, paths in requests.items()}
