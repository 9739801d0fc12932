"""What remains of the record of the checks if several programs write it at the same time."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recapture.keep.record import merged
from recapture.run_files.changes import Changes

SLICES = st.sampled_from(["10", "11", "12"])
TIMES = st.sampled_from(["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z", "2024-03-01T12:00:00Z"])
RECORDS = st.builds(
    Changes,
    slices=st.dictionaries(SLICES, st.sampled_from(["run a", "run b"])),
    noticed=st.dictionaries(SLICES, TIMES),
    published=st.dictionaries(SLICES, TIMES),
    last_changes=st.dictionaries(SLICES, TIMES),
    released=st.dictionaries(SLICES, TIMES),
    unknown=st.sets(SLICES).map(sorted).map(tuple),
    checked=TIMES,
    start=TIMES,
    end=TIMES,
    updated=st.none() | TIMES,
    finished=st.none() | st.integers(-1, 3),
    since=st.none() | TIMES,
)


def found(record: Changes) -> list[Mapping[str, object]]:
    unknown = dict.fromkeys(record.unknown, True)
    return [record.slices, record.published, record.noticed, record.last_changes, record.released, unknown]


@given(RECORDS, RECORDS)
def test_alone_the_record_is_what_we_made_of_it(before: Changes, ours: Changes) -> None:
    later = replace(ours, checked=max(str(ours.checked), str(before.checked)))
    result = merged(before, later, before)
    assert found(result) == found(ours)
    assert (result.checked, result.turn) == (later.checked, ours.turn)


@given(RECORDS, RECORDS, RECORDS)
def test_nothing_that_others_wrote_meanwhile_is_lost(before: Changes, ours: Changes, theirs: Changes) -> None:
    result = merged(before, ours, theirs)
    for was, now, mine, after in zip(*map(found, (before, theirs, ours, result)), strict=True):
        for text in ("10", "11", "12"):
            expected = now if now.get(text) != was.get(text) else mine
            assert after.get(text) == expected.get(text)
    assert result.checked == max(str(ours.checked), str(theirs.checked))
    assert result.updated == max([record.updated for record in (ours, theirs) if record.updated], default=None)


@given(RECORDS, RECORDS, RECORDS)
def test_writing_again_after_a_lost_answer_changes_nothing(before: Changes, ours: Changes, theirs: Changes) -> None:
    once = merged(before, ours, theirs)
    assert merged(before, ours, once) == once
