"""Views of texts and bytes, against Arrow's copies of them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.views import copied, lengths, starts_with, taken

VALUES = st.lists(st.one_of(st.none(), st.text("{a\u00e9\ufeff", max_size=30)), max_size=20)


def views(values: Sequence[str | None], offset: int) -> pa.Array:
    """Return views in several buffers, from an offset."""
    parts = [pa.array(["before"] * offset, pa.string()), *(pa.array([value], pa.string()) for value in values)]
    together = pa.concat_arrays([part.cast(pa.string_view()) for part in parts])
    return together[offset:]


@given(VALUES, st.integers(0, 3), st.data())
def test_views_are_what_their_copies_are(values: list[str | None], offset: int, data: st.DataObject) -> None:
    texts = views(values, offset)
    copies = pa.array(values, pa.string())
    assert copied(texts) == copies
    assert copied(copies) is copies
    assert lengths(texts.cast(pa.binary_view())).tolist() == [len((value or "").encode()) for value in values]
    assert starts_with(texts, "{") == starts_with(copies, "{")
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    chosen = taken(texts, np.array(rows, np.intp))
    assert chosen.type == pa.string_view()
    assert copied(chosen) == taken(copies, np.array(rows, np.intp)) == copies.take(pa.array(rows, pa.int64()))


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.struct([("a", pa.int64())])])
def test_other_columns_are_taken_by_arrow(type_: pa.DataType) -> None:
    nothing = pa.nulls(3, type_)
    assert taken(nothing, np.array([2, 0])) == nothing[:2]
