"""The scripts of a pipeline's JavaScript functions."""

from pathlib import Path

from recapture.definition.sections import Function
from recapture.errors import DefinitionError
from recapture.model import JavaScriptFunction
from recapture.process.regular_files import read_regular

MAX_SCRIPT_BYTES = 1024 * 1024
"""Largest size of the script of a function."""


def javascript_function(folder: Path, name: str, function: Function) -> JavaScriptFunction:
    """Return a function with the text of its script. Raise DefinitionError if the script cannot be read."""
    path = folder / function.script
    try:
        content = read_regular(path, MAX_SCRIPT_BYTES + 1)
        script = content.decode("utf-8-sig")
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read ({error.strerror}): correct the path") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    if len(content) > MAX_SCRIPT_BYTES:
        raise DefinitionError(f"{path} is larger than {MAX_SCRIPT_BYTES // 1024} KiB: shorten it")
    types = function.argument_types
    arguments = None if types is None else tuple(None if type_ == "any" else type_ for type_ in types)
    lines = script.replace("\r\n", "\n").replace("\r", "\n")
    return JavaScriptFunction(name, lines, function.output_type, arguments, function.kind == "aggregate")
