"""Aggregates in two steps, so that results do not depend on how Spark shuffles (docs/time-model.md, section 6).

The first step aggregates the events of one input partition and pane, which are in one task in arrival order. The second
merges these partial aggregates in the order of pane and partition: floats added in another order differ in their last
bits. A pane is a stretch of time that every window holds whole or not at all (see `grouping`).
"""

from dataclasses import dataclass

from recapture.javascript.columns import DATE
from recapture.model import AsaType
from recapture.query.generate.select_items import SqlItem, struct
from recapture.query.lower.spark import cast, render, unix_milliseconds
from recapture.query.lower.spark_text import let, quoted_name
from recapture.query.plan.aggregates import COLLECTIONS, SPREADS, Aggregate, AggregateFunction, Ordering
from recapture.query.plan.expressions import Expr, call, double
from recapture.query.plan.operations import Op


@dataclass(frozen=True)
class AggregateSql:
    """An aggregate in Spark SQL."""

    aggregate: Aggregate

    @property
    def function(self) -> AggregateFunction:
        """Its function."""
        return self.aggregate.function

    @property
    def input(self) -> str:
        """Spark SQL of the argument as it enters the first step; that of a collection is a struct, which sorts."""
        if self.function not in COLLECTIONS:
            return render(self.aggregate.prepared())
        assert self.aggregate.argument is not None
        orders = [part for ordering in self.aggregate.orderings for part in _sortable(ordering)]
        sorted_by = [SqlItem(f"o{number}", order) for number, order in enumerate(orders)]
        times = [SqlItem("t", "`_system_timestamp`"), SqlItem("a", "`_arrival`")]
        return struct([*sorted_by, *times, SqlItem("v", render(self.aggregate.argument))])

    def partials(self, argument: str, name: str) -> list[SqlItem]:
        """Return the items of the first step, over the prepared argument; the first of them is called `name`.

        AVG => sum(`_a0`) AS `_p0`, count(`_a0`) AS `_p0_n`
        """
        items = [SqlItem(name, self._partial(argument))]
        if self.function in (AggregateFunction.SUM, AggregateFunction.AVG) or self._has_plain_spread:
            items.append(SqlItem(f"{name}_n", f"count({argument})"))
        if self._has_plain_spread:
            items.append(SqlItem(f"{name}_m2", f"var_pop({argument}) * count({argument})"))
        return items

    def _partial(self, argument: str) -> str:
        collected = f"collect_list({argument})"
        match self.function:
            case AggregateFunction.COUNT | AggregateFunction.MIN | AggregateFunction.MAX:
                return f"{self.function.value}({argument})"
            case AggregateFunction.COUNT_DISTINCT:
                return f"collect_set({argument})"
            case AggregateFunction.SUM | AggregateFunction.AVG:
                unordered = not self.aggregate.ordered and self._sums_floats
                return _total(f"array_sort({collected})") if unordered else f"sum({argument})"
            case AggregateFunction.PERCENTILE_CONT | AggregateFunction.PERCENTILE_DISC:
                return collected
        if self.function in SPREADS:
            return f"sum({argument})" if self.aggregate.ordered else _spread_of(f"array_sort({collected})")
        fields = [*(f"o{number}" for number in range(2 * len(self.aggregate.orderings))), "t", "a", "p", "i", "v"]
        values = {"p": "`_partition`", "i": "i" if self.aggregate.ordered else "0"}
        row = struct(SqlItem(field, values.get(field, f"x.{field}")) for field in fields)
        return self._limited(f"array_sort(transform({collected}, (x, i) -> {row}))")

    @property
    def collects(self) -> bool:
        """Whether `merged` collects the partials."""
        sums_bigints = self.function is AggregateFunction.SUM and not self._sums_floats
        return not sums_bigints and self.function not in (
            AggregateFunction.COUNT,
            AggregateFunction.MIN,
            AggregateFunction.MAX,
        )

    def merged_partials(self, name: str) -> list[SqlItem]:
        """Return the items that merge the partials of one pane over all partitions; see Aggregate.has_running_form.

        AVG => the total of `_p0` AS `_p0`, sum(`_p0_n`) AS `_p0_n`
        """
        if self.function in (AggregateFunction.MIN, AggregateFunction.MAX):
            return [SqlItem(name, f"{self.function.value}({quoted_name(name)})")]
        counts = [SqlItem(part, _sum(part)) for part in self._counts(name)]
        return [SqlItem(name, self._merged_sum(name)), *counts]

    def running(self, name: str, over: str) -> list[SqlItem]:
        """Return the items that accumulate the partials of all panes up to the current one.

        AVG => sum(`_p0`) OVER (…) AS `_p0`, sum(`_p0_n`) OVER (…) AS `_p0_n`
        """
        function = self.function.value if self.function in (AggregateFunction.MIN, AggregateFunction.MAX) else "sum"
        return [SqlItem(part, f"{function}(`{part}`) {over}") for part in (name, *self._counts(name))]

    def _counts(self, name: str) -> list[str]:
        return [f"{name}_n"] if self.function in (AggregateFunction.SUM, AggregateFunction.AVG) else []

    def merged(self, name: str) -> str:
        """Return the result of the second step, over the partials.

        SUM of bigint => sum(`_p0`)
        """
        flat = f"flatten(collect_list({quoted_name(name)}))"
        match self.function:
            case AggregateFunction.COUNT:
                return _sum(name)
            case AggregateFunction.COUNT_DISTINCT:
                return cast(f"size(array_distinct({flat}))", "BIGINT")
            case AggregateFunction.MIN | AggregateFunction.MAX:
                return f"{self.function.value}({quoted_name(name)})"
            case AggregateFunction.SUM:
                return self._merged_sum(name)
            case AggregateFunction.AVG:
                return mean(self._merged_sum(name), _sum(f"{name}_n"))
            case AggregateFunction.PERCENTILE_CONT | AggregateFunction.PERCENTILE_DISC:
                return self._percentile(f"array_sort({flat})")
        if self.function in SPREADS:
            spread = _spread_of_pane(name) if self._has_plain_spread else quoted_name(name)
            return let(_merged_spreads(_in_order(spread)), "s", self._spread_result)
        rows = self._limited(f"array_sort({flat})")
        if self.function is AggregateFunction.TOPONE:
            return f"get({rows}, 0).v"
        if self.function is AggregateFunction.USER_DEFINED:
            timestamp = struct([SqlItem(DATE, unix_milliseconds("x.t"))])
            event = struct([SqlItem("value", "x.v"), SqlItem("timestamp", timestamp)])
            return f"transform({rows}, x -> {event})"
        if self.function is AggregateFunction.COLLECT:
            return _json_array(f"transform({rows}, x -> x.v)")
        ranked = """concat('{"rank":', CAST(i + 1 AS STRING), ',"value":', x.v, '}')"""
        return _json_array(f"transform({rows}, (x, i) -> {ranked})")

    @property
    def _has_plain_spread(self) -> bool:
        """Whether its partials are the sum, the count and the squared differences; if not, one struct of a spread."""
        return self.function in SPREADS and self.aggregate.ordered

    @property
    def _sums_floats(self) -> bool:
        return self.function is AggregateFunction.AVG or (
            self.function is AggregateFunction.SUM and self.aggregate.type is AsaType.FLOAT
        )

    def _merged_sum(self, name: str) -> str:
        return _total(_in_order(quoted_name(name))) if self._sums_floats else _sum(name)

    def _limited(self, rows: str) -> str:
        limit = 1 if self.function is AggregateFunction.TOPONE else self.aggregate.limit
        return f"slice({rows}, 1, {limit})" if limit else rows

    def _percentile(self, ascending: str) -> str:
        """Return the percentile of an array in ascending order; DESC counts from the other end."""
        values = f"reverse({ascending})" if self.aggregate.orderings[0].descending else ascending
        interpolated = self.function is AggregateFunction.PERCENTILE_CONT
        return let(values, "s", self._interpolated if interpolated else self._nearest)

    def _nearest(self, values: str) -> str:
        part, whole = self.aggregate.share.numerator, self.aggregate.share.denominator
        rank = f"greatest(({part}L * size({values}) + {whole - 1}L) div {whole}L, 1L)"
        return f"get({values}, CAST({rank} - 1 AS INT))"

    def _interpolated(self, values: str) -> str:
        part, whole = self.aggregate.share.numerator, self.aggregate.share.denominator
        steps = f"({part}L * (size({values}) - 1))"
        low = f"CAST({steps} div {whole}L AS INT)"
        rest = f"(CAST({steps} % {whole}L AS DOUBLE) / {float(whole)!r}D)"
        return (
            f"CASE WHEN size({values}) > 0 THEN get({values}, {low}) + CASE WHEN {rest} = 0 THEN 0.0D"
            f" ELSE (get({values}, {low} + 1) - get({values}, {low})) * {rest} END END"
        )

    def _spread_result(self, spread: str) -> str:
        """Return the standard deviation or the variance of a struct of count, mean and squared differences."""
        of_population = self.function in (AggregateFunction.STDEVP, AggregateFunction.VARP)
        least, divisor = (1, f"{spread}.n") if of_population else (2, f"({spread}.n - 1)")
        variance = f"{spread}.m2 / {divisor}"
        result = (
            f"sqrt({variance})" if self.function in (AggregateFunction.STDEV, AggregateFunction.STDEVP) else variance
        )
        return f"CASE WHEN {spread}.n >= {least} THEN {result} END"


def _sortable(ordering: Ordering) -> tuple[str, str]:
    """Return two columns whose ascending order is that of ORDER BY: n DESC => (`n` IS NULL), (-1L - (`n`))"""
    value, is_float = ordering.value, ordering.type is AsaType.FLOAT
    sql = render(value)
    if ordering.descending:
        return f"({sql} IS NULL)", f"(- ({sql}) + 0.0D)" if is_float else f"(-1L - ({sql}))"
    return f"({sql} IS NOT NULL)", render(_without_sign_of_zero(value)) if is_float else sql


def _without_sign_of_zero(number: Expr) -> Expr:
    return call(Op.ADD, number, double(0.0))


def _sum(partial: str) -> str:
    return f"sum({quoted_name(partial)})"


def _in_order(partial: str) -> str:
    """Return the partials in the order of panes and partitions."""
    rows = f"array_sort(collect_list(named_struct('w', `_pane`, 'p', `_partition`, 's', {partial})))"
    return f"transform({rows}, x -> x.s)"


def _total(values: str) -> str:
    """Return the sum of floats, added in the array's order; NULL if there is none."""
    add = "(total, x) -> coalesce(total + x, x)"
    return f"aggregate(filter({values}, x -> x IS NOT NULL), CAST(NULL AS DOUBLE), {add})"


def _spread(n: str, mean: str, m2: str) -> str:
    """Return a struct of count, mean and sum of squared differences from the mean."""
    return struct([SqlItem("n", n), SqlItem("mean", mean), SqlItem("m2", m2)])


def _spread_of_pane(name: str) -> str:
    """Return the struct of a pane's sum, count and squared differences; without values, its mean and m2 are NULL."""
    n = quoted_name(f"{name}_n")
    return _spread(n, mean(quoted_name(name), n), quoted_name(f"{name}_m2"))


def mean(total: str, count: str) -> str:
    """Return the quotient of a sum and a count; NULL if the count is 0."""
    return f"({total} / nullif(CAST({count} AS DOUBLE), 0.0D))"


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


def _json_array(texts: str) -> str:
    return f"concat('[', array_join({texts}, ','), ']')"
