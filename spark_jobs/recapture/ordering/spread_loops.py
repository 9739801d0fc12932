"""Merge the spreads of groups one by one, in compiled code.

`rows` holds the rows of each group in order; those of group g are at `starts[g]` to `starts[g + 1]`. `n`, `mean` and
`m2` are the fields of the spread in each row. `merged` receives those of each group's spread, in three rows.
"""

from recapture.process.compilation import compiled


@compiled
def continue_spreads(starts, rows, n, mean, m2, merged):  # type: ignore[no-untyped-def]
    """Add single values to spreads by Welford's algorithm, as Spark's CentralMomentAgg does.

    A spread of more than one value must be the first of its group.
    """
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = rows[place]
            if n[row] == 1.0:
                count += 1.0
                delta = mean[row] - average
                step = delta / count
                average += step
                squares += delta * (delta - step)
            elif n[row] > 1.0:
                count, average, squares = n[row], mean[row], m2[row]
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares


@compiled
def add_spreads(starts, rows, n, mean, m2, merged):  # type: ignore[no-untyped-def]
    """Add spreads by Chan's algorithm, as `aggregates._merged_spreads` writes it for Spark."""
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = rows[place]
            if n[row] > 0.0:
                total = count + n[row]
                delta = mean[row] - average
                squares = squares + m2[row] + delta * delta * count * n[row] / total
                average += delta * n[row] / total
                count = total
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares
