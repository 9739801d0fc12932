"""A JSON file of Recapture holds what was written, or is not written (`run_files.json_file`)."""

import math
from dataclasses import dataclass

import pytest

from recapture.run_files.json_file import JsonFile


@dataclass(frozen=True)
class Measured:
    """A content with a float and a string."""

    value: float
    name: str


FILE = JsonFile("measured.json", Measured)


@pytest.mark.parametrize("content", [Measured(0.1, "é"), Measured(-1e300, "NaN"), Measured(5e-324, "-Infinity")])
def test_a_file_holds_what_was_written(content: Measured) -> None:
    assert FILE.decode(FILE.encode(content), "the file") == content


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_json_does_not_have_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        FILE.encode(Measured(value, "x"))
