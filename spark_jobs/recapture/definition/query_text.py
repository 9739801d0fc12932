"""Write text in front of the query in a pipeline file, and change nothing else of the file."""

import json
import re
import textwrap
from pathlib import Path

from ruamel.yaml import MappingNode, ScalarNode

from recapture.definition.document import Document, KeyPath, parse, read
from recapture.errors import DefinitionError
from recapture.storage import open_container

_JOB, _QUERY = "job", "query"


def write_in_front(path: Path, query: str, text: str) -> None:
    """Write text in front of the query of a pipeline file. A killed process leaves the file as it was.

    Raise DefinitionError if the file has another query, or if the form of its YAML cannot be edited.
    """
    document = read(path)
    key_path: KeyPath = (_JOB, _QUERY)
    if document.values[_JOB][_QUERY] != query:
        raise DefinitionError(f"{path} has changed: run the same command again")
    before = path.read_bytes().decode()
    after = _edited(before, document, query, text)
    expected = document.values | {_JOB: document.values[_JOB] | {_QUERY: text + query}}
    if after is None or _values(path, after) != expected:
        raise document.error(key_path, "the query's form of YAML cannot be edited: write it as a block, query: |")
    file = path.resolve()
    open_container(file.parent.as_uri()).write(file.name, after.encode())


def _edited(file: str, document: Document, query: str, text: str) -> str | None:
    """Return the file with the text in front of the query; None without a place for it.

    A block gets more lines. Any other query becomes a block, or a text in quotation marks where braces allow no block.
    """
    job, node = document.node((_JOB,)), document.node((_JOB, _QUERY))
    if not isinstance(job, MappingNode) or not isinstance(node, ScalarNode):
        return None
    start, end = node.start_mark.index, node.end_mark.index
    if node.style == "|":
        first = file.index("\n", start) + 1
        lines = re.compile(r"(?: *\r?\n)*( *)").match(file, first)
        assert lines is not None
        line_break = "\r\n" if file[first - 2] == "\r" else "\n"
        return file[:first] + textwrap.indent(text, lines[1]).replace("\n", line_break) + file[first:]
    if job.flow_style:
        return file[:start] + json.dumps(text + query, ensure_ascii=False) + file[end:]
    end = start + len(file[start:end].rstrip())
    comment, line_break, rest = file[end:].partition("\n")
    header = "|" if query.endswith("\n") else "|-"
    block = textwrap.indent(text + query, " " * (job.start_mark.column + 2)).removesuffix("\n")
    return f"{file[:start]}{header}{comment}\n{block}{line_break}{rest}"


def _values(path: Path, file: str) -> object:
    """Return the values of a text of YAML; None if it is not one."""
    try:
        return parse(path, file).values
    except DefinitionError:
        return None
