"""Write the text of a pipeline file: YAML for people, with a comment above each key that needs one."""

import re
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from recapture.definition.document import Yaml11
from recapture.tools.asa_job.draft import Draft, Place

_PLAIN = r"\t\n\x20-\x7E\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\U00010000-\U0010FFFF"
"""The characters that a block scalar and a comment can contain (a regex class)."""
_INDENT = 2


def pipeline_text(draft: Draft, origin: str) -> str:
    """Return the text of the file: the values of the draft, and its notes as comments. `origin` is the job's file."""
    root = _commented(draft.values)
    query = draft.values["job"]["query"]
    if re.fullmatch(f"[{_PLAIN}]+", query):
        root["job"]["query"] = LiteralScalarString(query)
    for place, notes in draft.notes.items():
        _comment(root, place, re.sub(f"[^{_PLAIN}]", "?", "\n".join(notes)))
    yaml = YAML()
    yaml.Resolver = Yaml11
    yaml.width = 10_000
    text = StringIO()
    yaml.dump(root, text)
    source = re.sub(f"[^{_PLAIN}]|\n", "?", origin)
    return f"# From the job in {source}.\n{text.getvalue()}"


def _commented(value: Any) -> Any:
    """Return the value for ruamel.yaml: mappings and lists can have comments, and texts are read back as they are."""
    if isinstance(value, dict):
        return CommentedMap((key, _commented(item)) for key, item in value.items())
    if isinstance(value, list):
        return CommentedSeq(map(_commented, value))
    is_odd = isinstance(value, str) and re.search(f"[^{_PLAIN}]", value)
    return DoubleQuotedScalarString(value) if is_odd else value


def _comment(root: CommentedMap, place: Place, text: str) -> None:
    """Write a comment above the key at a place."""
    holder, column = root, 0
    for step in place[:-1]:
        holder = holder[step]
        column += _INDENT * isinstance(holder, CommentedMap)
    holder.yaml_set_comment_before_after_key(place[-1], before=text, indent=column)
