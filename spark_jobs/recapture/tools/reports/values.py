"""The values of rows in a report, as strings."""

import json
from typing import Any


def value_text(value: Any, digits: int = 7) -> str:
    """Return a value of a row as a string; a float has at most this number of significant digits."""
    if value is None or isinstance(value, str):
        return "null" if value is None else value
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "Z")
    return json.dumps(value, default=str)
