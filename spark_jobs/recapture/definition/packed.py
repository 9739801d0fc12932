"""A pipeline with the files that it names, as JSON: it travels to a process that cannot read the pipeline file."""

import json
import re
from pathlib import Path
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.errors import PermanentError
from recapture.process.regular_files import read_regular

MAX_SUITE_BYTES = 4 * 1024 * 1024
"""Largest size of a suite that travels."""
_NAME = re.compile(r"[\w-]+\.(js|json)")


def pack(pipeline: Pipeline) -> dict[str, Any]:
    """Return the sections of a pipeline in JSON types, and the texts of its scripts and suites by name.

    The values of environment variables are written out. A suite that cannot be read is left out, so that it is refused
    where the pipeline is unpacked, as it is here.
    """
    sections = pipeline.model_dump(mode="json", by_alias=True, exclude_unset=True)
    files = {}
    for function in pipeline.javascript:
        sections["functions"][function.name]["script"] = name = f"{function.name}.js"
        files[name] = function.script
    for output, section in zip(pipeline.outputs, sections["output"], strict=True):
        path = pipeline.suite_path(output)
        if path is not None:
            quality = (sections if output.quality is None else section)["quality"]
            quality["suite"] = name = f"{output.alias}.json"
            try:
                files[name] = read_regular(path, MAX_SUITE_BYTES).decode()
            except (OSError, UnicodeDecodeError):
                continue
    return {"file": pipeline.file.name, "sections": sections, "files": files}


def unpack(packed: dict[str, Any], folder: Path) -> Pipeline:
    """Return the pipeline that was packed. Its file, scripts and suites are written to a folder.

    Raise PermanentError if this is not the content of `pack`, such as that of another version.
    """
    try:
        for name, text in packed["files"].items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a script or a suite")
            (folder / name).write_text(text, encoding="utf-8", newline="")
        file = folder / Path(packed["file"]).name
        file.write_text(json.dumps(packed["sections"]), encoding="utf-8")
        return Pipeline(**packed["sections"], file=file)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PermanentError(f"the stored definition cannot be read: {error}") from error
