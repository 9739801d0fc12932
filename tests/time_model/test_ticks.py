"""Instants as texts, for messages and for names."""

from recapture.time_model.ticks import TICKS_PER_SECOND, UNIX_EPOCH, from_compact_text, to_compact_text, to_text

TEN = UNIX_EPOCH + 1_772_359_200 * TICKS_PER_SECOND


def test_a_text_has_decimals_only_if_it_needs_them() -> None:
    assert to_text(TEN) == "2026-03-01T10:00:00Z"
    assert to_text(TEN + TICKS_PER_SECOND // 2) == "2026-03-01T10:00:00.500000Z"


def test_a_compact_text_has_no_separators_and_can_be_read_again() -> None:
    assert to_compact_text(TEN) == "20260301T100000Z"
    assert from_compact_text("20260301T100000Z") == TEN
