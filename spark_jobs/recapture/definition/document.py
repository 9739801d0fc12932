"""A YAML file, read within limits: its values, and the line of each.

Plain scalars are read by YAML 1.1, as PyYAML reads them: `on` is true, `0600` is octal, and `12:30` is a number in base
60. What PyYAML takes for a text and YAML 1.1 does not, such as `y` and `1e5`, is refused.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver

from recapture.errors import DefinitionError

KeyPath = tuple[str | int, ...]
"""The keys and indices that lead from the root to a value."""

MAX_BYTES = 256 * 1024
"""Largest size of a file; pipeline files have a few thousand bytes."""
MAX_LEVELS = 50
MAX_VALUES = 10_000
"""Most values in a file, if every alias is replaced by its value."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Name of a pipeline."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
_DISPUTED = {
    "tag:yaml.org,2002:bool": re.compile("[yYnN]"),
    "tag:yaml.org,2002:float": re.compile(r"[^.]*[eE].*|.*[eE][0-9].*"),
}
"""Plain scalars that are a string in PyYAML, by the tag that YAML 1.1 gives them: `y`, `1e5`, `1.5e3`."""


class Yaml11(VersionedResolver):
    """Resolves plain scalars by YAML 1.1, whatever version the file declares."""

    @property
    def processing_version(self) -> tuple[int, int]:
        return (1, 1)


@dataclass(frozen=True)
class Document:
    """A YAML file whose root is a mapping. Where a list may stand, one value stands for a list of one."""

    path: Path
    root: Node
    values: dict[str, Any]

    def node(self, key_path: KeyPath) -> Node | None:
        """Return the value at a key path as a node of YAML; None if there is none."""
        return self._find(key_path)[2]

    def text(self, key_path: KeyPath) -> str | None:
        """Return the scalar at a key path as the file has it, variables included; None if there is no scalar."""
        node = self.node(key_path)
        return str(node.value) if isinstance(node, ScalarNode) else None

    def error(self, key_path: KeyPath, reason: str, *, colon: str = ": ") -> DefinitionError:
        """Return the error that names the file, the line and the key, and gives the reason.

        The value of an environment variable may be a secret: if the reason contains it, its name is shown instead.
        """
        written, line, _ = self._find(key_path)
        for name in _VARIABLE.findall(self.text(key_path) or ""):
            if value := os.environ.get(name):
                reason = re.sub(re.escape(value), rf"${{{name}}}", reason, flags=re.IGNORECASE)
        return DefinitionError(f"{self.path}:{line}: {'.'.join(map(str, written))}{colon}{reason}")

    @contextmanager
    def at(self, key_path: KeyPath) -> Iterator[None]:
        """Let a DefinitionError that is raised in this context name the file, the line and the key."""
        try:
            yield
        except DefinitionError as error:
            raise self.error(key_path, str(error)) from error

    def with_environment(self, verbatim: KeyPath) -> dict[str, Any]:
        """Return the values, `${NAME}` replaced except at `verbatim`. Raise DefinitionError if one is not set."""

        def replaced(value: Any, key_path: KeyPath) -> Any:
            if isinstance(value, dict):
                return {key: replaced(item, (*key_path, key)) for key, item in value.items()}
            if isinstance(value, list):
                return [replaced(item, (*key_path, index)) for index, item in enumerate(value)]
            if not isinstance(value, str) or key_path == verbatim:
                return value
            for name in _VARIABLE.findall(value):
                if name not in os.environ:
                    raise self.error(key_path, f"the environment variable {name} is not set: set it")
            return _VARIABLE.sub(lambda match: os.environ[match[1]], value)

        return {key: replaced(value, (key,)) for key, value in self.values.items()}

    def _find(self, key_path: KeyPath) -> tuple[KeyPath, int, Node | None]:
        """Return the key path as the file has it, the line of the innermost key that exists, and the value."""
        node: Node | None = self.root
        line, written = _line(self.root), list[str | int]()
        for step in key_path:
            if isinstance(step, int) and not isinstance(node, SequenceNode):
                continue
            written.append(step)
            key, node = _item(node, step)
            line = line if key is None else _line(key)
        return tuple(written), line, node


def _item(node: Node | None, step: str | int) -> tuple[Node | None, Node | None]:
    """Return the key (of a list: the value) and the value that a key or an index leads to; None for both if absent."""
    if isinstance(node, SequenceNode):
        return node.value[step], node.value[step]
    pairs = node.value if isinstance(node, MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == step), (None, None))


def read(path: Path) -> Document:
    """Read a YAML file. Raise DefinitionError with the file, the line and what to do."""
    return parse(path, _text(path))


def parse(path: Path, text: str) -> Document:
    """Return the content of a YAML file. Errors are those of `read`."""
    yaml = _yaml()
    with _errors_with_lines(path, text):
        root = yaml.compose(text)
        if root is not None:
            _require_bounded(path, root, yaml.constructor)
        values = None if root is None else yaml.constructor.construct_document(root)
    if not isinstance(values, dict):
        raise DefinitionError(f"{path}:1: a pipeline file is a mapping with name, input, job and output")
    return Document(path, root, values)


def split(place: str, text: str) -> dict[str | int, str]:
    """Return the text of each mapping in a YAML list, or of the only one, by its `name`, or else its number from 1 on.

    Each keeps its lines and columns. Raise DefinitionError, with `place` and the line, if there is none, or if the list
    has something else.
    """
    with _errors_with_lines(place, text):
        root = _yaml().compose(text)
    nodes = root.value if isinstance(root, SequenceNode) else [root]
    texts: dict[str | int, str] = {}
    for number, node in enumerate(nodes, 1):
        if not isinstance(node, MappingNode):
            line = 1 if node is None else _line(node)
            raise DefinitionError(f"{place}:{line}: write a pipeline, or a list of pipelines")
        _, named = _item(node, "name")
        name = named.value if isinstance(named, ScalarNode) else ""
        key = name if NAME.fullmatch(name) and name not in texts else number
        start, end = node.start_mark, node.end_mark
        texts[key] = "\n" * start.line + " " * start.column + text[start.index : end.index]
    if not texts:
        raise DefinitionError(f"{place}:1: the list is empty: write a pipeline, or a list of pipelines")
    return texts


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver = Yaml11
    yaml.max_depth = MAX_LEVELS
    yaml.composer.warn_double_anchors = False  # they are refused
    return yaml


@contextmanager
def _errors_with_lines(place: Path | str, text: str) -> Iterator[None]:
    """Raise DefinitionError, with the place and the line, if a text is not YAML."""
    try:
        yield
    except MaxDepthExceededError as error:
        raise _too_deep(place, error.problem_mark.line + 1) from error
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DefinitionError(f"{place}:{line}: not YAML: {error.problem}") from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DefinitionError(f"{place}:{line}: not YAML: a character that YAML does not allow") from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DefinitionError(f"{path}: the pipeline file is larger than {MAX_BYTES // 1024} KiB: shorten it")
        return content.decode()
    except OSError as error:
        raise DefinitionError(f"{path}: the pipeline file cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: the pipeline file is not UTF-8 text") from error


def _require_bounded(path: Path, root: Node, constructor: SafeConstructor) -> None:
    """Raise DefinitionError unless every value can be read, and aliases do not make a small file large or endless."""
    measured: dict[int, tuple[int, int]] = {}
    """Levels and values of a node, by its id; (0, 0) while they are counted."""
    anchors: set[str] = set()

    def measure(node: Node, level: int) -> tuple[int, int]:
        if id(node) not in measured and level <= MAX_LEVELS:
            measured[id(node)] = (0, 0)
            if node.anchor in anchors:
                raise DefinitionError(f"{path}:{_line(node)}: the anchor &{node.anchor} appears twice: rename one")
            anchors.update([node.anchor] if node.anchor else [])
            inner = [measure(child, level + 1) for child in _children(path, node, constructor)]
            levels = 1 + max((levels for levels, _ in inner), default=0)
            measured[id(node)] = (levels, 1 + sum(values for _, values in inner))
        levels, values = measured.get(id(node), (0, 0))
        if not 0 < levels <= MAX_LEVELS:
            raise _too_deep(path, _line(node))
        if values > MAX_VALUES:
            raise DefinitionError(f"{path}:{_line(node)}: aliases stand for more than {MAX_VALUES:,} values: use fewer")
        return levels, values

    measure(root, 1)


def _children(path: Path, node: Node, constructor: SafeConstructor) -> Iterator[Node]:
    """Yield the values in a node. Raise DefinitionError for a value or a key that cannot be read."""
    if isinstance(node, ScalarNode):
        _join_surrogates(path, node)
        _require_readable(path, node, constructor)
    elif isinstance(node, SequenceNode):
        yield from node.value
    else:
        keys: set[str] = set()
        for key, value in node.value:
            if str(key.tag) not in _KEYS:
                raise DefinitionError(f"{path}:{_line(key)}: keys must be strings: quote or remove this key")
            if key.value in keys:
                raise DefinitionError(f"{path}:{_line(key)}: {key.value} appears twice: remove one")
            keys.add(key.value)
            yield value


def _join_surrogates(path: Path, node: ScalarNode) -> None:
    """Replace the surrogate pairs by which JSON escapes a character. Raise DefinitionError for a lone surrogate."""
    try:
        node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        reason = "half of a surrogate pair is no character: write the character itself"
        raise DefinitionError(f"{path}:{_line(node)}: {reason}") from error


def _require_readable(path: Path, node: ScalarNode, constructor: SafeConstructor) -> None:
    shown = f"{path}:{_line(node)}: {node.value[:40]}"
    disputed = _DISPUTED.get(str(node.tag))
    if disputed is not None and disputed.fullmatch(node.value):
        raise DefinitionError(f"{shown} is a string to some YAML parsers, and not to others: quote or rewrite it")
    try:
        constructor.construct_object(node)
    except ValueError as error:
        reason = "looks like a number or a date but is not: if it is a string, quote it"
        raise DefinitionError(f"{shown} {reason}") from error


def _too_deep(place: Path | str, line: int) -> DefinitionError:
    return DefinitionError(f"{place}:{line}: the file is nested deeper than {MAX_LEVELS} levels: flatten it")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
