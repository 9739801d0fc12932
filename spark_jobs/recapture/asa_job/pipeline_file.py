"""The text of a pipeline file: YAML that a person reads and goes on with."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from recapture.asa_job.carry_over import Draft, Place

_PLAIN = r"\t\n\x20-\x7E\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\U00010000-\U0010FFFF"
"""The characters that a block scalar holds and gives back as they were."""

_AS_WRITTEN = re.compile(f"[{_PLAIN}]*")
_NOT_PLAIN = re.compile(f"[^{_PLAIN}]")


class _Block(str):
    """Text on lines of its own."""


class _Dumper(yaml.SafeDumper):
    def analyze_scalar(self, scalar: str) -> Any:
        """As PyYAML, which gives up a block for a tab or a space before a line's end, and trusts it with U+0085."""
        analysis = super().analyze_scalar(scalar)
        analysis.allow_block = bool(scalar and _AS_WRITTEN.fullmatch(scalar))
        analysis.allow_single_quoted = analysis.allow_single_quoted and analysis.allow_block
        return analysis


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)
_Dumper.add_representer(type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", ""))


def pipeline_text(draft: Draft, origin: str) -> str:
    """The file's text: the values, each note in a comment above its line. `origin` tells where the job came from."""
    job = draft.values["job"]
    values = {**draft.values, "job": {**job, "query": _Block(job["query"])}}
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return f"# From the ASA job in {origin}.\n{_with_notes(text, draft.notes)}"


def _with_notes(text: str, notes: Mapping[Place, list[str]]) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert root is not None
    lines = text.split("\n")
    marks = sorted(((_mark(root, place), each) for place, each in notes.items()), reverse=True)
    for (line, column), each in marks:
        said = [f"{' ' * column}# {part}" for note in each for part in _NOT_PLAIN.sub("?", note).split("\n")]
        lines[line:line] = said
    return "\n".join(lines)


def _mark(node: yaml.Node, place: Place) -> tuple[int, int]:
    """The line and the column of a key, from 0."""
    mark = node.start_mark
    for step in place:
        if isinstance(node, yaml.MappingNode):
            key, node = next((key, value) for key, value in node.value if key.value == step)
            mark = key.start_mark
        else:
            node = node.value[step]
    return mark.line, mark.column
