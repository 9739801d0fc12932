"""The types of the fields by their use, when the query has no CREATE TABLE.

The argument of SUM, AVG, MIN and MAX, an operand of arithmetic and what is compared with a number is float;
TIMESTAMP BY is datetime; the rest is nvarchar(max). A field whose uses disagree is refused: CREATE TABLE decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.query.fields import Fields, Path, is_system_timestamp
from spark_jobs.query.model import AsaType

COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod


@dataclass(frozen=True)
class _Alike:
    """Fields that one expression puts together, so that the type of one is the type of all."""

    paths: list[Path]
    where: exp.Expr
    compared: bool
    """Whether they are compared; then it matters as what, and nvarchar(max) is no safe guess."""


@dataclass
class Inference:
    """What the uses seen so far demand of each field."""

    fields: Fields
    timestamp_by: Path | None
    keys: dict[Path, exp.Expr]
    """The fields of GROUP BY and OVER: they stand for themselves, so their type must not come from another use."""
    _demands: dict[Path, AsaType] = field(default_factory=dict)
    _alike: list[_Alike] = field(default_factory=list)

    def types(self, uses: Iterable[exp.Expr]) -> dict[Path, AsaType]:
        """The types that the uses demand; a field that is missing here is nvarchar(max)."""
        if self.timestamp_by:
            self._demands[self.timestamp_by] = AsaType.DATETIME
        for use in uses:
            self._visit(use, None)
        self._settle()
        return self._demands

    def _visit(self, node: exp.Expr, want: AsaType | None) -> None:
        path = self.fields.path(node)
        if is_system_timestamp(node):
            return
        if path is not None:
            self._demand(path, want, node)
        elif isinstance(node, exp.Paren | exp.Alias):
            self._visit(node.this, want)
        elif isinstance(node, exp.Neg | exp.Sum | exp.Avg | exp.Min | exp.Max | ARITHMETIC):
            self._visit_all(node, AsaType.FLOAT)
        elif isinstance(node, COMPARISONS):
            self._visit_peers([node.this, node.expression], node, want=None)
        elif isinstance(node, exp.In) and node.expressions:
            self._visit_peers([node.this, *node.expressions], node, want=None)
        elif isinstance(node, exp.Between):
            self._visit_peers([node.this, node.args["low"], node.args["high"]], node, want=None)
        elif isinstance(node, exp.Case):
            branches = node.args["ifs"]
            if node.this:
                self._visit_peers([node.this, *(branch.this for branch in branches)], node, want=None)
            else:
                for branch in branches:
                    self._visit(branch.this, None)
            self._visit_peers(_results(node), node, want)
        else:
            self._visit_all(node, None)

    def _visit_all(self, node: exp.Expr, want: AsaType | None) -> None:
        for child in node.iter_expressions():
            self._visit(child, want)

    def _visit_peers(self, peers: list[exp.Expr], where: exp.Expr, want: AsaType | None) -> None:
        kinds = [kind for kind in map(self._kind, peers) if kind]
        kind = want or (kinds[0] if kinds else None)
        for peer in peers:
            self._visit(peer, kind)
        leaves = [self._leaves(peer) for peer in peers]
        if kind is None and None not in leaves:
            paths = [path for some in leaves for path in some or []]
            self._alike.append(_Alike(paths, where, compared=not isinstance(where, exp.Case) or peers[0] is where.this))

    def _leaves(self, node: exp.Expr) -> list[Path] | None:
        """The fields whose values a node may have; None for a node that is refused later."""
        path = self.fields.path(node)
        if path is not None:
            return [path]
        if isinstance(node, exp.Paren):
            return self._leaves(node.this)
        if isinstance(node, exp.Case):
            leaves = [self._leaves(result) for result in _results(node) if not isinstance(result, exp.Null)]
            return None if None in leaves else [path for some in leaves for path in some or []]
        return None

    def _kind(self, node: exp.Expr) -> AsaType | None:
        if is_system_timestamp(node):
            return AsaType.DATETIME
        path = self.fields.path(node)
        if path is not None:
            return AsaType.DATETIME if path == self.timestamp_by else None
        if isinstance(node, exp.Literal):
            return AsaType.TEXT if node.is_string else AsaType.FLOAT
        if isinstance(node, exp.Paren):
            return self._kind(node.this)
        if isinstance(node, exp.Min | exp.Max):
            return self._kind(node.this) or AsaType.FLOAT
        if isinstance(node, exp.Case):
            return next(filter(None, map(self._kind, _results(node))), None)
        if isinstance(node, exp.Neg | exp.Count | exp.Sum | exp.Avg | ARITHMETIC):
            return AsaType.FLOAT
        return None

    def _demand(self, path: Path, want: AsaType | None, where: exp.Expr) -> None:
        if want is None or path == self.timestamp_by:
            return
        held = self._demands.setdefault(path, want)
        if held != want:
            raise self.fields.source.refuse(
                where, f"`{'.'.join(path)}` is used as {want} here and as {held} elsewhere: {self._advice(path)}"
            )
        if path in self.keys and want != AsaType.TEXT:
            raise self.fields.source.refuse(
                where, f"`{'.'.join(path)}` is a key and used as {want} here, so which is it? {self._advice(path)}"
            )

    def _settle(self) -> None:
        """Carry types over to the fields that stand together with typed ones, as far as it goes."""
        unsettled, before = self._alike, -1
        while len(unsettled) != before:
            before = len(unsettled)
            for alike in unsettled:
                kind = next((self._demands[path] for path in alike.paths if path in self._demands), None)
                for path in alike.paths:
                    self._demand(path, kind, alike.where)
            unsettled = [alike for alike in unsettled if not all(path in self._demands for path in alike.paths)]
        for alike in unsettled:
            if alike.compared and alike.paths:
                raise self.fields.source.refuse(
                    alike.where, f"nothing tells as what fields are compared here: {self._advice(alike.paths[0])}"
                )

    def _advice(self, path: Path) -> str:
        table = f"CREATE TABLE {self.fields.input_alias} ({'.'.join(path)} bigint, …)"
        return f"say the type of every field, such as {table}"


def _results(case: exp.Case) -> list[exp.Expr]:
    results = [branch.args["true"] for branch in case.args["ifs"]]
    default = case.args.get("default")
    return [*results, default] if default else results
