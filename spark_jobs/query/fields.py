"""Fields of the event's body, as a query names them: `id`, `site.id`, `telemetry.site.id`, `[odd name]`."""

from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.query.source import Source

Path = tuple[str, ...]

_METADATA = {"partitionid", "eventenqueuedutctime", "eventprocessedutctime"}
_RESERVED = {"_partition", "_slice_start", "_slice_end", "_system_timestamp"}


def identifiers(node: exp.Expr) -> list[exp.Identifier] | None:
    """The names of a dotted path, left to right, or None for anything else."""
    if isinstance(node, exp.Identifier):
        return [node]
    if isinstance(node, exp.Column):
        parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        names = [part for part in parts if part is not None]
        return names if all(isinstance(name, exp.Identifier) for name in names) else None
    if isinstance(node, exp.Dot):
        left, right = identifiers(node.this), identifiers(node.expression)
        return None if left is None or right is None else left + right
    return None


def is_system_timestamp(node: exp.Expr) -> bool:
    """Whether a node is System.Timestamp() or System.Timestamp, in any letter case."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        call, names = node.expression, identifiers(node.this)
        last = str(call.this) if not call.expressions and isinstance(call.this, str) else None
    else:
        names = identifiers(node)
        last = names[-1].name if names and len(names) == 2 and not names[-1].quoted else None
        names = names[:1] if names else None
    if names is None or last is None or len(names) != 1 or names[0].quoted:
        return False
    return (names[0].name.lower(), last.lower()) == ("system", "timestamp")


@dataclass
class Fields:
    """Which fields a query reads. A field matches the body by its exact letter case, a table's name in any."""

    source: Source
    qualifier: str
    """The name that may stand before a field: the input's, or its alias in FROM."""
    input_alias: str
    exact: set[int] = field(default_factory=set)
    """Offsets of the names whose letter case means something."""
    _paths: dict[str, Path] = field(default_factory=dict)

    def path(self, node: exp.Expr) -> Path | None:
        """The path of a field from the body's root, or None if the node is not a field."""
        if is_system_timestamp(node) or not isinstance(node, exp.Column | exp.Dot):
            return None
        names = identifiers(node)
        if not names:
            return None
        if len(names) > 1 and names[0].name.lower() == self.qualifier.lower():
            names = names[1:]
        elif len(names) > 1 and names[0].name.lower() == self.input_alias.lower():
            raise self.source.refuse(names[0], f"FROM calls the input `{self.qualifier}`: write that")
        if names[0].name.lower() == "system" and len(names) > 1:
            raise self.source.refuse(names[0], "of System only System.Timestamp() is supported")
        path = tuple(name.name for name in names)
        self._check(path, names)
        self.exact.update(name.meta["start"] for name in names)
        return path

    def _check(self, path: Path, names: list[exp.Identifier]) -> None:
        where, name = names[0], ".".join(path)
        if not all(path) or "${" in name or "\n" in name:
            raise self.source.refuse(where, f"`{name}` cannot be a field's name here")
        if len(path) == 1 and name.lower() in _METADATA:
            raise self.source.refuse(
                where,
                f"`{name}` is metadata that ASA adds to the event, not a field of its body, and is not supported"
                + (": leave out TIMESTAMP BY and set the input's arrival_time" if "utc" in name.lower() else ""),
            )
        if name.lower() in _RESERVED:
            raise self.source.refuse(where, f"the name `{name}` is taken by the pipeline")
        known = self._paths.setdefault(name.lower(), path)
        if known != path:
            raise self.source.refuse(where, f"`{name}` and `{'.'.join(known)}` cannot be read by one query: too alike")
        for other in self._paths.values():
            shorter, longer = sorted((path, other), key=len)
            if shorter != longer and longer[: len(shorter)] == shorter:
                raise self.source.refuse(
                    where, f"`{'.'.join(shorter)}` is a record, as `{'.'.join(longer)}` shows, and cannot be read whole"
                )
