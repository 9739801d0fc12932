"""An expectation on values that stay the same."""

from typing import ClassVar

import pandas as pd
from great_expectations.compatibility.pydantic import Field

from recapture.process.wording import counted
from recapture.quality.expectations.base import Columns, Count, FrameExpectation, Mostly, examples, groups
from recapture.quality.finding import Finding


class ExpectColumnValuesToVary(FrameExpectation):
    """Expect the values of each key to vary.

    Judges each key with at least `min_rows` values that are not null: they are not all equal. A stuck sensor repeats
    one value.

    Args:
        column: the column whose values vary.
        key_columns: the columns of the key, such as a device; default none.
        min_rows: the smallest number of values of a key that is judged; default 6.
        mostly: the share of the keys that must meet this, 0 to 1; default 1.
    """

    column: str
    key_columns: Columns = Field(default_factory=list)
    min_rows: Count = 6
    mostly: Mostly = 1.0
    success_keys: ClassVar[tuple[str, ...]] = ("column", "key_columns", "min_rows", "mostly")

    def needed_columns(self) -> list[str]:
        return [self.column, *self.key_columns]

    def judge(self, frame: pd.DataFrame) -> Finding:
        frame = frame[frame[self.column].notna()]
        by_key = frame[self.column].groupby(groups(frame, self.key_columns))
        rows = by_key.size()
        is_judged = rows >= self.min_rows
        stuck = is_judged & (by_key.nunique() == 1)
        keys = frame[self.key_columns].assign(**{self.column: frame[self.column], "rows": 0})
        shown = keys.groupby(groups(frame, self.key_columns)).first().assign(rows=rows)
        unjudged = len(rows) - int(is_judged.sum()) if len(rows) else 1
        numbers, why = (int(is_judged.sum()), int(stuck.sum())), f"fewer than {counted(self.min_rows, 'value')}"
        return Finding("key", *numbers, examples(shown[stuck]), unjudged, why, f"{self.column} does not vary")
