"""The schema of an Avro record as a table of nodes, which compiled code can follow."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any

import fastavro
import numpy as np
from numpy.typing import NDArray


class Kind(IntEnum):
    """How the values of a type are written."""

    FIXED = 0
    """As many bytes as the type says; none for null, and for a record whose fields have none."""
    LONG = 1
    """A number in zigzag code, in groups of seven bits."""
    STRING = 2
    """Its length as a LONG, then its bytes."""
    UNION = 3
    """The index of its branch as a LONG, then a value of the branch."""
    RECORD = 4
    """Its fields, one after the other. Those that have no bytes are left out."""
    ARRAY = 5
    """Blocks: their number of items as a LONG, then the items; a block of none is the end."""
    MAP = 6
    """As an ARRAY. Each item is a key, which is a STRING, and a value."""
    ENUM = 7
    """The index of its symbol as a LONG."""


_FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_KINDS = {"int": Kind.LONG, "long": Kind.LONG, "bytes": Kind.STRING, "string": Kind.STRING}


@dataclass(frozen=True)
class Layout:
    """The types of a record. A node is an index in `nodes`."""

    nodes: NDArray[np.int32]
    """For each node its kind, a number, and its children: the branches, the fields, the item, or the value of a map.

    The number is that of the bytes of a FIXED, or that of the children.
    """
    names: dict[int, str]
    """Name of each node's type in Avro."""
    fields: dict[str, int]
    """Nodes of the record's fields, in their order, by name."""

    @cached_property
    def written(self) -> dict[str, int]:
        """The fields whose values have bytes."""
        return {name: node for name, node in self.fields.items() if not is_empty(self.nodes, node)}

    def kind(self, node: int) -> Kind:
        return Kind(int(self.nodes[node]))

    def children(self, node: int) -> list[int]:
        children: list[int] = self.nodes[node + 2 : node + 2 + self.nodes[node + 1]].tolist()
        return [] if self.kind(node) is Kind.FIXED else children

    def branches(self, node: int) -> list[int]:
        """Return the nodes of a union's branches other than null, or the node alone if it is not a union."""
        branches = self.children(node) if self.kind(node) is Kind.UNION else [node]
        return [branch for branch in branches if self.names[branch] != "null"]


def is_empty(nodes: Sequence[int] | NDArray[np.int32], node: int) -> bool:
    """Return whether the values of a type have no bytes: a few bytes could declare any number of them."""
    return bool(nodes[node] == Kind.FIXED and nodes[node + 1] == 0)


@lru_cache(maxsize=64)
def layout_of(schema: str) -> Layout:
    """Return the layout of a record's schema. Raise ValueError, or what fastavro raises, if it cannot be used."""
    parsed = fastavro.parse_schema(json.loads(schema))
    if not isinstance(parsed, dict) or parsed["type"] != "record":
        raise ValueError("it is not that of a record")
    nodes = _Nodes()
    nodes.named[parsed["name"]] = None
    fields = {column["name"]: nodes.add(column["type"]) for column in parsed["fields"]}
    return Layout(np.array(nodes.written, np.int32), nodes.names, fields)


@dataclass
class _Nodes:
    """The nodes so far."""

    written: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    named: dict[str, int | None] = field(default_factory=dict)
    """Nodes of the types that have a name of their own; None while a type is not complete."""

    def add(self, schema: Any) -> int:
        """Add a type, as fastavro returns it, and return its node. Raise ValueError if Recapture cannot read it."""
        if isinstance(schema, list):
            if any(isinstance(branch, list) for branch in schema):
                raise ValueError("a union is a branch of a union")
            return self._node("union", Kind.UNION, [self.add(branch) for branch in schema])
        name = schema["type"] if isinstance(schema, dict) else schema
        if not isinstance(name, str):
            return self.add(name)
        if name in _FIXED:
            return self._node(name, Kind.FIXED, size=_FIXED[name])
        if name == "array":
            return self._node(name, Kind.ARRAY, [self.add(schema["items"])])
        if name == "map":
            return self._node(name, Kind.MAP, [self.add(schema["values"])])
        if name in ("record", "error", "enum", "fixed"):
            return self._named(name, schema)
        if name in _KINDS:
            return self._node(name, _KINDS[name])
        node = self.named[name]
        if node is None:
            raise ValueError(f"{name} contains itself")
        return node

    def _named(self, name: str, schema: Any) -> int:
        self.named[schema["name"]] = None
        if name == "enum":
            node = self._node(name, Kind.ENUM)
        elif name == "fixed":
            if schema["size"] < 0:
                raise ValueError(f"{schema['name']} has a negative size")
            node = self._node(name, Kind.FIXED, size=schema["size"])
        else:
            fields = [self.add(column["type"]) for column in schema["fields"]]
            written = [field for field in fields if not is_empty(self.written, field)]
            node = self._node(name, Kind.RECORD, written) if written else self._node(name, Kind.FIXED)
        self.named[schema["name"]] = node
        return node

    def _node(self, name: str, kind: Kind, children: list[int] | None = None, size: int = 0) -> int:
        node = len(self.written)
        self.written += [kind, size] if children is None else [kind, len(children), *children]
        self.names[node] = name
        return node
