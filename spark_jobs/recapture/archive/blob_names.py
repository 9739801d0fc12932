"""Read the partition and the time from the names of an input's blobs, and return the prefixes to list."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import ClassVar

from recapture.archive.name_format import PARTITION_DIGITS, WIDTHS, Piece

ONLY_PARTITION = "0"
"""Partition of all blobs if their names give none."""

_BY_HOURS = timedelta(days=1)
"""Longest range that is listed by hours; a longer one is listed by days, and by longer periods where that is cheap."""
_TENS = "Tens of the day"
"""Stands for the first digit of a day: the days 1 to 9, 10 to 19, 20 to 29, or 30 and 31 of a month are one prefix."""
_FEWEST_OF_TEN = timedelta(days=5)
"""Length of the part of these days from which on they are listed as a whole: a listing has a page for 5,000 blobs."""
_BY_DAYS = timedelta(days=366)
"""Longest range that is listed by days if a format has the year after the month or the day."""


class BlobNames(ABC):
    """The names of one input's blobs: a sequence of pieces, then a suffix."""

    exact: ClassVar[bool] = False
    """Whether a blob's events arrived between the time in its name and the time in the next name.

    Otherwise they may have arrived up to one interval before or after.
    """
    on_schedule: ClassVar[bool] = False
    """Whether a service writes each blob when its interval ends."""
    most_partitions: ClassVar[int] = 10**PARTITION_DIGITS
    padded: ClassVar[bool] = True
    """Whether a partition below ten may have a leading zero."""

    @property
    @abstractmethod
    def _pieces(self) -> tuple[Piece, ...]:
        """Pieces of a name, in order; the names of the hub are text."""

    @property
    @abstractmethod
    def _suffix(self) -> str:
        """Pattern of what may follow the pieces."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._expression(self._pieces) + self._suffix, re.DOTALL)

    @cached_property
    def _tokens(self) -> tuple[str, ...]:
        return tuple(piece.token for piece in self._pieces if piece.token is not None)

    @property
    def partitioned(self) -> bool:
        """Whether names give a partition."""
        return "PartitionId" in self._tokens

    @property
    def timed(self) -> bool:
        """Whether names give a time."""
        return "Year" in self._tokens

    @cached_property
    def prefix(self) -> str:
        """Prefix of every name."""
        return _prefix(self._pieces, {})

    def name(self, partition: str, time: datetime, suffix: str = "") -> str:
        """Return the name of a blob with this partition and this time, UTC."""
        values = _digits(time) | {"PartitionId": partition}
        return "".join(piece.text if piece.token is None else values[piece.token] for piece in self._pieces) + suffix

    def parse(self, name: str) -> tuple[str, datetime | None] | None:
        """Return the partition and the time, UTC, of a blob; None if the name is not one of the input's.

        If names give no partition, it is ONLY_PARTITION; if they give no time, it is None.
        """
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        values = match.groupdict()
        partition = str(int(values["PartitionId"])) if self.partitioned else ONLY_PARTITION
        if not self.timed:
            return partition, None
        year, month, day, hour, minute, second = (int(values.get(token, 0)) for token in WIDTHS)
        try:
            return partition, datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None

    def prefixes(self, first: datetime, last: datetime, partitions: Iterable[str]) -> list[str]:
        """Return the smallest sorted set of disjoint prefixes that covers every name in [first, last].

        Other names have these prefixes too if other tokens stand before the partition or the time. Without partitions,
        the prefixes cover all partitions.
        """
        forms = [form for partition in partitions for form in self._forms(partition)]
        chosen = [{"PartitionId": form} for form in forms] or [{}]
        periods = list(_periods(first, last, self._year_first))
        return _disjoint(_prefix(self._pieces, values | period) for values in chosen for period in periods)

    def folder_of_partitions(self) -> str | None:
        """Return the prefix under which every folder is a partition.

        None if names have a time before the partition, or another token than a date between it and the next `/`.
        """
        return self._folders[0] if self._folders else None

    def partition_of_folder(self, folder: str) -> str | None:
        """Return the partition of a folder, whose name ends in `/`; None if the folder is not one of the input's."""
        match = self._folders[1].fullmatch(folder) if self._folders else None
        return str(int(match["PartitionId"])) if match else None

    @property
    def _year_first(self) -> bool:
        """Whether names have the year before the month and the day, so that a prefix covers a month or a year."""
        return True

    def _forms(self, partition: str) -> tuple[str, ...]:
        return (partition, f"0{partition}") if self.padded and len(partition) == 1 else (partition,)

    @cached_property
    def _folders(self) -> tuple[str, re.Pattern[str]] | None:
        if not self.partitioned:
            return None
        index = [piece.token for piece in self._pieces].index("PartitionId")
        before, after = self._pieces[:index], self._pieces[index + 1 :]
        if any(piece.token or "\\" in piece.text for piece in before):
            return None
        rest: list[Piece] = []
        for piece in after:
            if piece.token is None and "/" in piece.text:
                rest.append(Piece(None, piece.text.partition("/")[0] + "/"))
                folder = (*before, self._pieces[index], *rest)
                return "".join(text for _, text in before), re.compile(self._expression(folder))
            if piece.token not in (None, "Year", "Month", "Day"):
                break
            rest.append(piece)
        return None

    def _expression(self, written: Iterable[Piece]) -> str:
        """Return the pattern of the pieces. A repeated token has one value; a backslash may have become a slash."""
        tokens: set[str] = set()
        parts = []
        for piece in written:
            if piece.token is None:
                parts.append(re.escape(piece.text).replace("\\\\", r"[\\/]"))
            elif piece.token in tokens:
                parts.append(f"(?P={piece.token})")
            else:
                tokens.add(piece.token)
                more = f"[1-9][0-9]{{1,{PARTITION_DIGITS - 1}}}"
                partition = f"0?[0-9]|{more}" if self.padded else f"[0-9]|{more}"
                value = partition if piece.token == "PartitionId" else f"[0-9]{{{WIDTHS[piece.token]}}}"
                parts.append(f"(?P<{piece.token}>{value})")
        return "".join(parts)


def _prefix(written: Iterable[Piece], values: Mapping[str, str]) -> str:
    """Return the prefix of the names with these values, up to the first token without a value."""
    prefix = ""
    for piece in written:
        if piece.token is None and "\\" in piece.text:
            return prefix + piece.text.partition("\\")[0]
        if piece.token is not None and piece.token not in values:
            return prefix + values.get(_TENS, "") if piece.token == "Day" else prefix
        prefix += piece.text if piece.token is None else values[piece.token]
    return prefix


def _periods(first: datetime, last: datetime, year_first: bool) -> Iterator[dict[str, str]]:
    """Yield the token values of few years, months, tens of days, days and hours that cover a range."""
    start = first.replace(minute=0, second=0, microsecond=0)
    end = last.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if end - start > _BY_HOURS:
        start = start.replace(hour=0)
        end = (end + timedelta(hours=23)).replace(hour=0)
    by_days = not year_first and end - start <= _BY_DAYS
    while start < end:
        values, ten_days = _digits(start), _end_of_ten_days(start)
        tokens, following = next(period for period in _periods_from(start, by_days) if period[1] <= end)
        if "Day" in tokens and not by_days and min(ten_days, end) - start >= _FEWEST_OF_TEN:
            yield {"Year": values["Year"], "Month": values["Month"], _TENS: values["Day"][0]}
            start = ten_days
        else:
            yield {token: values[token] for token in tokens}
            start = following


def _end_of_ten_days(start: datetime) -> datetime:
    """Return the end of the days of this month whose first digit is that of this day."""
    month_end = (start.replace(day=1) + timedelta(days=31)).replace(day=1, hour=0)
    return min(month_end, start.replace(hour=0) + timedelta(days=10 - start.day % 10))


def _periods_from(start: datetime, by_days: bool) -> Iterator[tuple[tuple[str, ...], datetime]]:
    """Yield the tokens and the end of each period that begins at a time, the longest first."""
    if start.hour == 0 and start.day == 1 and not by_days:
        if start.month == 1:
            yield ("Year",), start.replace(year=start.year + 1)
        yield ("Year", "Month"), (start + timedelta(days=31)).replace(day=1)
    if start.hour == 0:
        yield ("Year", "Month", "Day"), start + timedelta(days=1)
    yield ("Year", "Month", "Day", "Hour"), start + timedelta(hours=1)


def _disjoint(prefixes: Iterable[str]) -> list[str]:
    """Return the prefixes that do not begin with another one, sorted."""
    disjoint: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not disjoint or not prefix.startswith(disjoint[-1]):
            disjoint.append(prefix)
    return disjoint


def _digits(instant: datetime) -> dict[str, str]:
    return {token: f"{getattr(instant, token.lower()):0{width}}" for token, width in WIDTHS.items()}
