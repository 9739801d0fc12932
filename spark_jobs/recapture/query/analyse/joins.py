"""JOIN: the sides that it joins, and the rows of them that match."""

from collections.abc import Iterator
from functools import partial, reduce

from sqlglot import exp

from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.relations import From, NamedRelation
from recapture.query.analyse.scopes import OnScope
from recapture.query.analyse.time_bounds import limits_of
from recapture.query.parse.names import Path, identifiers
from recapture.query.parse.source import Source, require_only
from recapture.query.plan.expressions import Expr, call, shifted, user_calls
from recapture.query.plan.joins import Join, Lookup, side_time
from recapture.query.plan.operations import Op
from recapture.time_model.joins import TimeBound

_KINDS = {("", ""): False, ("", "INNER"): False, ("LEFT", ""): True, ("LEFT", "OUTER"): True}
"""Whether each supported JOIN is a LEFT JOIN, by side and kind."""
_INSTEAD = {
    "RIGHT": "write LEFT JOIN, with the two sides exchanged",
    "FULL": "write LEFT JOIN, and add the rows that only the other side has with UNION",
}


def check_kind(source: Source, first: NamedRelation, join: exp.Join, has_reference: bool) -> None:
    """Raise DefinitionError for kinds of JOIN that ASA lacks, and for a JOIN without ON."""
    side, kind = join.side.upper(), join.kind.upper()
    name = join.this.alias_or_name or "b"
    form = f"JOIN … ON {_form(first.name, name)}"
    if has_reference:
        form = f"JOIN … ON 1 = 1, which takes every row of `{name}`"
    if (side, kind) not in _KINDS or join.method:
        words = " ".join(word for word in (join.method.upper(), side, kind, "JOIN") if word)
        instead = _INSTEAD.get(side, f"write {form}")
        raise source.error(join, f"ASA has no {words}: {instead}")
    require_only(source, join, "this", "side", "kind", "on")
    if join.args.get("on") is None:
        raise source.error(join, f"FROM takes one name; others follow with {form}")


def add_side(from_clause: From, new: NamedRelation, join: exp.Join) -> None:
    """Add a side and its JOIN to a FROM clause.

    FROM a JOIN b ON a.id = b.id AND DATEDIFF(second, a, b) BETWEEN 0 AND 5
    => Join(`0.id` = `1.id` AND …)
    FROM a JOIN reference r ON a.id = r.id => Lookup(`0.id` = `1.id`)

    Raise DefinitionError if the time bounds leave a distance without a limit, and for what is not supported in ON.
    """
    if from_clause.named(new.name):
        raise from_clause.source.error(
            join.this, f"`{new.name}` is already used: give each side of a JOIN its own name"
        )
    from_clause.relations.append(new)
    outer = _KINDS[join.side.upper(), join.kind.upper()]
    condition, bounds = _on(from_clause, new, join.args["on"], outer)
    new.optional = outer
    if new.is_reference:
        from_clause.distances.add_reference()
        from_clause.joins.append(Lookup(condition, outer))
        return
    _check_keys(from_clause, new, join.args["on"])
    if from_clause.distances.add(bounds, outer) is None:
        problem = "has a time bound on one side only" if bounds else "has no time bounds"
        form = _form(from_clause.relations[0].name, new.name)
        raise from_clause.source.error(join.args["on"], f"this JOIN {problem}: add {form} to ON, with your own numbers")
    from_clause.joins.append(Join(condition, _latest_match(bounds) if outer else None))


def _on(from_clause: From, new: NamedRelation, on: exp.Expr, outer: bool) -> tuple[Expr, list[TimeBound]]:
    """Return the condition of ON over the joined rows, and its bounds of the new side's time."""
    row = Expressions(from_clause.source, from_clause.types, OnScope(from_clause))
    conditions, bounds = [], []
    for node in _conjuncts(on):
        limits = limits_of(from_clause, node)
        if limits is None:
            condition = row.condition(node)
            if outer and user_calls(condition):
                message = "a JavaScript or ST_… function in ON of LEFT JOIN is not supported: call it in a step"
                raise from_clause.source.error(node, message)
            conditions.append(condition)
            continue
        if outer and not new.is_reference and (limits.start.optional or limits.end.optional):
            raise from_clause.source.error(node, "in LEFT JOIN, DATEDIFF cannot refer to an earlier nullable side")
        conditions.append(limits.condition)
        bound = limits.bound_of(new)
        if bound is not None:
            bounds.append(bound)
    return reduce(partial(call, Op.AND), conditions), bounds


def _check_keys(from_clause: From, new: NamedRelation, on: exp.Expr) -> None:
    """Raise DefinitionError unless ON compares the keys of PARTITION BY and of OVER, as ASA demands."""
    earlier = [named for named in from_clause.relations[:-1] if not named.is_reference]
    if any(len(named.partition_by) != len(new.partition_by) for named in earlier):
        raise from_clause.source.error(on, "write PARTITION BY after every side of a JOIN, or after none")
    inputs = [named for named in earlier if named.over]
    for clause, sides, keys in (
        ("PARTITION BY", [(named.name, named.partition_by) for named in earlier], new.partition_by),
        ("OVER", [(named.name, named.over) for named in inputs], new.over if inputs else ()),
    ):
        for place, key in enumerate(keys):
            pairs = [((name, *columns[place]), (new.name, *key)) for name, columns in sides]
            if not any(_compares(node, *pair) for pair in pairs for node in _conjuncts(on)):
                written = " = ".join(map(".".join, pairs[0]))
                raise from_clause.source.error(on, f"a JOIN with {clause} compares the keys: add {written} to ON")


def _form(first: str, new: str) -> str:
    """Return time bounds as an example for messages."""
    return f"DATEDIFF(minute, {first}, {new}) BETWEEN 0 AND 5"


def _latest_match(bounds: list[TimeBound]) -> Expr:
    """Return the latest time at which a match could occur: TimeBound(0, 0, 5) => (`0._system_timestamp` + 5L)"""
    ends = [shifted(side_time(bound.side), bound.high) for bound in bounds if bound.high is not None]
    return ends[0] if len(ends) == 1 else call(Op.LEAST, *ends)


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that AND connects: a AND (b AND c) => a, b, c"""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _compares(node: exp.Expr, left: Path, right: Path) -> bool:
    """Return whether a condition is that two dotted paths are equal."""
    if not isinstance(node, exp.EQ):
        return False
    written = [identifiers(side.unnest()) or [] for side in (node.this, node.expression)]
    paths = {tuple(name.name.lower() for name in side) for side in written}
    return paths == {tuple(name.lower() for name in path) for path in (left, right)}
