"""Aggregates in two steps, so that results do not depend on how Spark shuffles (docs/time-model.md, section 6).

The first step aggregates the events of one input partition and pane, which are in one task in arrival order. The second
merges these partial aggregates in the order of pane and partition: floats added in another order differ in their last
bits. A pane is a stretch of time that every window holds whole or not at all (see `grouping`).
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from recapture.model import AsaType
from recapture.query.generate.json_text import json_of
from recapture.query.generate.let import let
from recapture.query.generate.select_items import SelectItem, struct
from recapture.query.generate.values import Value


class Function(StrEnum):
    """The aggregates of ASAQL."""

    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT DISTINCT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    STDEV = "STDEV"
    STDEVP = "STDEVP"
    VAR = "VAR"
    VARP = "VARP"
    PERCENTILE_CONT = "PERCENTILE_CONT"
    PERCENTILE_DISC = "PERCENTILE_DISC"
    COLLECT = "COLLECT"
    COLLECTTOP = "COLLECTTOP"
    TOPONE = "TOPONE"


SPREADS = (Function.STDEV, Function.STDEVP, Function.VAR, Function.VARP)
PERCENTILES = (Function.PERCENTILE_CONT, Function.PERCENTILE_DISC)
COLLECTIONS = (Function.COLLECT, Function.COLLECTTOP, Function.TOPONE)
AGGREGATES = {function.value for function in Function if " " not in function.value}
"""Names of the aggregates; COUNT DISTINCT is a form of COUNT."""


@dataclass(frozen=True)
class Ordering:
    """One expression of an ORDER BY; NULL is the smallest."""

    value: Value
    descending: bool


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query, over the rows of a relation."""

    function: Function
    argument: Value | None = None
    """Argument; None for whole rows, as in COUNT(*)."""
    orderings: tuple[Ordering, ...] = ()
    """Expressions of ORDER BY."""
    share: Fraction = Fraction(0)
    """Share of a percentile, from 0 to 1."""
    limit: int = 0
    """Number of events that CollectTop collects; 0 for all."""
    ordered: bool = True
    """Whether the rows of a partition come in arrival order."""

    @property
    def type(self) -> AsaType:
        """Type of the result."""
        match self.function:
            case Function.COUNT | Function.COUNT_DISTINCT:
                return AsaType.BIGINT
            case Function.AVG | Function.PERCENTILE_CONT:
                return AsaType.FLOAT
            case Function.COLLECT | Function.COLLECTTOP:
                return AsaType.ARRAY
        if self.function in SPREADS or self.argument is None or self.argument.type is None:
            return AsaType.FLOAT
        return self.argument.type

    def prepared(self) -> str:
        """Return the argument as it enters the first step. Zeros are alike: -0.0 becomes 0.0.

        AVG(i) => CAST(`i` AS DOUBLE)
        """
        if self.function in COLLECTIONS:
            assert self.argument is not None
            value = self.argument.sql if self.function is Function.TOPONE else json_of(self.argument)
            orders = [part for ordering in self.orderings for part in _sortable(ordering)]
            sorted_by = [SelectItem(f"o{number}", order) for number, order in enumerate(orders)]
            return struct([*sorted_by, SelectItem("t", "`_system_timestamp`"), SelectItem("v", value)])
        if self.argument is None:
            return "1"
        if self.function in (Function.AVG, *SPREADS):
            return f"CAST({self.argument.sql} AS DOUBLE)"
        if self.argument.type is AsaType.FLOAT and self.function not in (Function.COUNT, Function.SUM):
            return f"({self.argument.sql} + 0.0D)"
        return self.argument.sql

    def partials(self, argument: str, name: str) -> list[SelectItem]:
        """Return the items of the first step, over the prepared argument; the first of them is called `name`.

        AVG => sum(`_a0`) AS `_p0`, count(`_a0`) AS `_p0_n`
        """
        if self.function in (Function.SUM, Function.AVG):
            return [SelectItem(name, self._partial(argument)), SelectItem(f"{name}_n", f"count({argument})")]
        return [SelectItem(name, self._partial(argument))]

    def _partial(self, argument: str) -> str:
        match self.function:
            case Function.COUNT | Function.MIN | Function.MAX:
                return f"{self.function}({argument})"
            case Function.COUNT_DISTINCT:
                return f"collect_set({argument})"
            case Function.SUM | Function.AVG:
                unordered = not self.ordered and self._sums_floats
                return _total(f"array_sort(collect_list({argument}))") if unordered else f"sum({argument})"
            case Function.PERCENTILE_CONT | Function.PERCENTILE_DISC:
                return f"collect_list({argument})"
        if self.function in SPREADS:
            if not self.ordered:
                return _spread_of(f"array_sort(collect_list({argument}))")
            return _spread(f"count({argument})", f"avg({argument})", f"var_pop({argument}) * count({argument})")
        fields = [*(f"o{number}" for number in range(2 * len(self.orderings))), "t", "p", "i", "v"]
        values = {"p": "`_partition`", "i": "i" if self.ordered else "0"}
        row = struct(SelectItem(field, values.get(field, f"x.{field}")) for field in fields)
        return self._first(f"array_sort(transform(collect_list({argument}), (x, i) -> {row}))")

    @property
    def runs(self) -> bool:
        """Whether the partials of some panes and those of one more pane merge into partials again."""
        return self.function in (Function.COUNT, Function.SUM, Function.AVG, Function.MIN, Function.MAX)

    def merged_partials(self, name: str) -> list[SelectItem]:
        """Return the items that merge the partials of one pane over all partitions; see `runs`."""
        if self.function in (Function.MIN, Function.MAX):
            return [SelectItem(name, f"{self.function}(`{name}`)")]
        total = _total(_in_order(name)) if self._sums_floats else f"sum(`{name}`)"
        return [SelectItem(name, total), *(SelectItem(part, f"sum(`{part}`)") for part in self._counts(name))]

    def running(self, name: str, over: str) -> list[SelectItem]:
        """Return the items of the partials of all panes up to a pane; see `runs`."""
        function = self.function if self.function in (Function.MIN, Function.MAX) else "sum"
        return [SelectItem(part, f"{function}(`{part}`) {over}") for part in (name, *self._counts(name))]

    def _counts(self, name: str) -> list[str]:
        return [f"{name}_n"] if self.function in (Function.SUM, Function.AVG) else []

    def merged(self, name: str) -> str:
        """Return the result of the second step, over the partials.

        SUM of bigint => sum(`_p0`)
        """
        flat = f"flatten(collect_list(`{name}`))"
        match self.function:
            case Function.COUNT:
                return f"sum(`{name}`)"
            case Function.COUNT_DISTINCT:
                return f"CAST(size(array_distinct({flat})) AS BIGINT)"
            case Function.MIN | Function.MAX:
                return f"{self.function}(`{name}`)"
            case Function.SUM:
                return _total(_in_order(name)) if self._sums_floats else f"sum(`{name}`)"
            case Function.AVG:
                return f"({_total(_in_order(name))} / nullif(CAST(sum(`{name}_n`) AS DOUBLE), 0.0D))"
            case Function.PERCENTILE_CONT | Function.PERCENTILE_DISC:
                return self._percentile(f"array_sort({flat})")
        if self.function in SPREADS:
            return let(_merged_spreads(_in_order(name)), "s", self._spread_result)
        rows = self._first(f"array_sort({flat})")
        if self.function is Function.TOPONE:
            return f"get({rows}, 0).v"
        if self.function is Function.COLLECT:
            return _listed(f"transform({rows}, x -> x.v)")
        ranked = "concat('{\"rank\":', CAST(i + 1 AS STRING), ',\"value\":', x.v, '}')"
        return _listed(f"transform({rows}, (x, i) -> {ranked})")

    @property
    def _sums_floats(self) -> bool:
        return self.function is Function.AVG or (self.function is Function.SUM and self.type is AsaType.FLOAT)

    def _first(self, rows: str) -> str:
        limit = 1 if self.function is Function.TOPONE else self.limit
        return f"slice({rows}, 1, {limit})" if limit else rows

    def _percentile(self, ascending: str) -> str:
        """Return the percentile of an array in ascending order; DESC counts from the other end."""
        values = f"reverse({ascending})" if self.orderings[0].descending else ascending
        interpolated = self.function is Function.PERCENTILE_CONT
        return let(values, "s", self._interpolated if interpolated else self._nearest)

    def _nearest(self, values: str) -> str:
        part, whole = self.share.numerator, self.share.denominator
        place = f"greatest(({part}L * size({values}) + {whole - 1}L) div {whole}L, 1L)"
        return f"get({values}, CAST({place} - 1 AS INT))"

    def _interpolated(self, values: str) -> str:
        part, whole = self.share.numerator, self.share.denominator
        steps = f"({part}L * (size({values}) - 1))"
        low = f"CAST({steps} div {whole}L AS INT)"
        rest = f"(CAST({steps} % {whole}L AS DOUBLE) / {whole}.0D)"
        above = f"(get({values}, {low} + 1) - get({values}, {low})) * {rest}"
        value = f"get({values}, {low}) + CASE WHEN {rest} = 0 THEN 0.0D ELSE {above} END"
        return f"CASE WHEN size({values}) > 0 THEN {value} END"

    def _spread_result(self, spread: str) -> str:
        """Return the standard deviation or the variance of a struct of count, mean and squared differences."""
        whole = self.function in (Function.STDEVP, Function.VARP)
        least, divisor = (1, f"{spread}.n") if whole else (2, f"({spread}.n - 1)")
        variance = f"{spread}.m2 / {divisor}"
        result = f"sqrt({variance})" if self.function in (Function.STDEV, Function.STDEVP) else variance
        return f"CASE WHEN {spread}.n >= {least} THEN {result} END"


def _sortable(ordering: Ordering) -> tuple[str, str]:
    """Return two columns that sort ascending as ORDER BY says."""
    value, down = ordering.value.sql, ordering.descending
    absent = f"({value} IS NULL)" if down else f"({value} IS NOT NULL)"
    if ordering.value.type is AsaType.FLOAT:
        return absent, f"(- ({value}) + 0.0D)" if down else f"({value} + 0.0D)"
    return absent, f"(-1L - ({value}))" if down else value


def _in_order(name: str) -> str:
    """Return the partials in the order of panes and partitions."""
    rows = f"array_sort(collect_list(named_struct('w', `_pane`, 'p', `_partition`, 's', `{name}`)))"
    return f"transform({rows}, x -> x.s)"


def _total(values: str) -> str:
    """Return the sum of floats, added in the array's order; NULL for no float."""
    return (
        f"aggregate(filter({values}, x -> x IS NOT NULL), CAST(NULL AS DOUBLE), (total, x) -> coalesce(total + x, x))"
    )


def _spread(n: str, mean: str, m2: str) -> str:
    """Return a struct of count, mean and sum of squared differences from the mean."""
    return struct([SelectItem("n", n), SelectItem("mean", mean), SelectItem("m2", m2)])


_NO_VALUES = _spread("0L", "0.0D", "0.0D")


def _spread_of(values: str) -> str:
    """Return count, mean and squared differences of values, in the array's order (Welford's algorithm)."""
    mean = "a.mean + (x - a.mean) / (a.n + 1L)"
    step = _spread("a.n + 1L", mean, f"a.m2 + (x - a.mean) * (x - ({mean}))")
    return f"aggregate({values}, {_NO_VALUES}, (a, x) -> {step})"


def _merged_spreads(spreads: str) -> str:
    """Return count, mean and squared differences of several parts (Chan's algorithm)."""
    step = _spread(
        "a.n + b.n",
        "a.mean + (b.mean - a.mean) * b.n / (a.n + b.n)",
        "a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * b.n / (a.n + b.n)",
    )
    return f"aggregate(filter({spreads}, b -> b.n > 0), {_NO_VALUES}, (a, b) -> {step})"


def _listed(texts: str) -> str:
    return f"concat('[', array_join({texts}, ','), ']')"
