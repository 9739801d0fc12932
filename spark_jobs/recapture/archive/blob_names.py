"""What the names of an input's blobs tell: their partition and a time; and by which beginnings they are listed."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import ClassVar

from recapture.archive.name_format import PARTITION_DIGITS, WIDTHS, Piece

ONLY_PARTITION = "0"
"""Of blobs whose names have none."""

_BY_HOURS = timedelta(days=1)
"""Up to which a range is listed hour by hour; a longer one day by day, and whole months and years as one."""
_BY_DAYS = timedelta(days=366)
"""Up to which a longer range is listed day by day where a format has the year behind the month or the day."""


class BlobNames(ABC):
    """The names of the blobs of one input: pieces in a row, and what may follow them."""

    exact: ClassVar[bool] = False
    """Whether the time in a name is when the first of its events could come, and the next name's when the last could.

    Else both lie within an interval of these times.
    """
    on_schedule: ClassVar[bool] = False
    """Whether a service writes what came once an interval is over."""
    most_partitions: ClassVar[int] = 10**PARTITION_DIGITS
    """Of one input."""
    padded: ClassVar[bool] = True
    """Whether a partition below ten may have a zero before it."""

    @property
    @abstractmethod
    def _pieces(self) -> tuple[Piece, ...]:
        """In order, a hub's own names in their places."""

    @property
    @abstractmethod
    def _behind(self) -> str:
        """The pattern of what may follow the pieces."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._expression(self._pieces) + self._behind, re.DOTALL)

    @cached_property
    def _tokens(self) -> tuple[str, ...]:
        return tuple(each.token for each in self._pieces if each.token is not None)

    @property
    def partitioned(self) -> bool:
        """Whether the names tell a partition."""
        return "PartitionId" in self._tokens

    @property
    def timed(self) -> bool:
        """Whether the names tell a time."""
        return "Year" in self._tokens

    @cached_property
    def prefix(self) -> str:
        """What every name begins with."""
        return _beginning(self._pieces, {})

    def name(self, partition: str, opened: datetime, behind: str = "") -> str:
        """The name with this partition and time, in UTC, and with this behind it."""
        values = _digits(opened) | {"PartitionId": partition}
        return "".join(each.text if each.token is None else values[each.token] for each in self._pieces) + behind

    def parse(self, name: str) -> tuple[str, datetime | None] | None:
        """The partition of the blob with this name, a number, and the time in it, in UTC.

        ONLY_PARTITION and None where the names tell none; None for both where the name is none of the input's.
        """
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        found = match.groupdict()
        partition = str(int(found["PartitionId"])) if self.partitioned else ONLY_PARTITION
        if not self.timed:
            return partition, None
        year, month, day, hour, minute, second = (int(found.get(token, 0)) for token in WIDTHS)
        try:
            return partition, datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None

    def prefixes(self, first: datetime, last: datetime, partitions: Iterable[str]) -> list[str]:
        """As few beginnings as tell the names of these times from others, as far as the names allow; in order.

        No name has two of them. Where the names have other tokens before the partition or the time, they are shorter
        and others' names begin so too. Without any partition: of all partitions.
        """
        forms = [form for partition in partitions for form in self._forms(partition)]
        chosen = [{"PartitionId": form} for form in forms] or [{}]
        periods = list(_periods(first, last, self._year_first))
        return _shortest(_beginning(self._pieces, values | period) for values in chosen for period in periods)

    def folder_of_partitions(self) -> str | None:
        """What the names have before their partition, where the folders beside each other there tell all partitions.

        None where they have a time before the partition, or no `/` soon behind it.
        """
        return self._folders[0] if self._folders else None

    def partition_of_folder(self, folder: str) -> str | None:
        """The partition of such a folder, which ends in `/`; None where it is none of the input's."""
        match = self._folders[1].fullmatch(folder) if self._folders else None
        return str(int(match["PartitionId"])) if match else None

    @property
    def _year_first(self) -> bool:
        """Whether whole months and years are told by how the names begin."""
        return True

    def _forms(self, partition: str) -> tuple[str, ...]:
        """How a partition is written."""
        return (partition, f"0{partition}") if self.padded and len(partition) == 1 else (partition,)

    @cached_property
    def _folders(self) -> tuple[str, re.Pattern[str]] | None:
        if not self.partitioned:
            return None
        place = [each.token for each in self._pieces].index("PartitionId")
        before, after = self._pieces[:place], self._pieces[place + 1 :]
        if any(each.token or "\\" in each.text for each in before):
            return None
        up_to: list[Piece] = []
        for each in after:
            if each.token is None and "/" in each.text:
                up_to.append(Piece(None, each.text.partition("/")[0] + "/"))
                whole = (*before, self._pieces[place], *up_to)
                return "".join(each.text for each in before), re.compile(self._expression(whole))
            if each.token not in (None, "Year", "Month", "Day"):
                break
            up_to.append(each)
        return None

    def _expression(self, written: Iterable[Piece]) -> str:
        """The pattern of the pieces; a token that stands again has the same value. A backslash may be a slash now."""
        seen: set[str] = set()
        parts = []
        for each in written:
            if each.token is None:
                parts.append(re.escape(each.text).replace("\\\\", r"[\\/]"))
            elif each.token in seen:
                parts.append(f"(?P={each.token})")
            else:
                seen.add(each.token)
                more = f"[1-9][0-9]{{1,{PARTITION_DIGITS - 1}}}"
                partition = f"0?[0-9]|{more}" if self.padded else f"[0-9]|{more}"
                value = partition if each.token == "PartitionId" else f"[0-9]{{{WIDTHS[each.token]}}}"
                parts.append(f"(?P<{each.token}>{value})")
        return "".join(parts)


def _beginning(written: Iterable[Piece], values: Mapping[str, str]) -> str:
    """What the names with these values begin with, up to the first token that has none."""
    found = ""
    for each in written:
        if each.token is None and "\\" in each.text:
            return found + each.text.partition("\\")[0]
        if each.token is not None and each.token not in values:
            return found
        found += each.text if each.token is None else values[each.token]
    return found


def _periods(first: datetime, last: datetime, year_first: bool) -> Iterator[dict[str, str]]:
    """The years, months, days and hours, as few as possible, that hold a range: the values of their tokens."""
    start = first.replace(minute=0, second=0, microsecond=0)
    end = last.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if end - start > _BY_HOURS:
        start = start.replace(hour=0)
        end = (end + timedelta(hours=23)).replace(hour=0)
    by_days = not year_first and end - start <= _BY_DAYS
    while start < end:
        tokens, following = next(period for period in _beginning_at(start, by_days) if period[1] <= end)
        values = _digits(start)
        yield {token: values[token] for token in tokens}
        start = following


def _beginning_at(start: datetime, by_days: bool) -> Iterator[tuple[tuple[str, ...], datetime]]:
    """The tokens of the periods that begin then, longest first, and when the next one begins."""
    if start.hour == 0 and start.day == 1 and not by_days:
        if start.month == 1:
            yield ("Year",), start.replace(year=start.year + 1)
        yield ("Year", "Month"), (start + timedelta(days=31)).replace(day=1)
    if start.hour == 0:
        yield ("Year", "Month", "Day"), start + timedelta(days=1)
    yield ("Year", "Month", "Day", "Hour"), start + timedelta(hours=1)


def _shortest(beginnings: Iterable[str]) -> list[str]:
    """Those that begin with no other, in order."""
    kept: list[str] = []
    for each in sorted(set(beginnings)):
        if not kept or not each.startswith(kept[-1]):
            kept.append(each)
    return kept


def _digits(instant: datetime) -> dict[str, str]:
    return {token: f"{getattr(instant, token.lower()):0{width}}" for token, width in WIDTHS.items()}
