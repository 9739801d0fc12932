"""The names of Capture blobs: their partition and the time at which their window began (capture format, the name)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from spark_jobs.capture.name_format import WIDTHS, Piece, pieces, require_all, require_told_apart

DEFAULT_PATH = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"

EXTENSION = ".avro"
_PARTITION = "0|[1-9][0-9]*"
_BY_HOURS = timedelta(days=1)
"""Up to which a range is listed hour by hour; a longer one day by day, and whole months and years as one."""


@dataclass(frozen=True)
class CaptureNames:
    """The names that Capture gives to the blobs of one event hub.

    Raises DefinitionError where the format lacks a token or does not tell this hub's blobs from another's.
    """

    namespace: str
    event_hub: str
    format: str = DEFAULT_PATH
    """Text and tokens in any order. Names end in `.avro`, whether it does or not; those of 2016 have no extension."""

    def __post_init__(self) -> None:
        require_all(self._written)
        require_told_apart(self._written, self.namespace, self.event_hub)

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(pieces(self.format.removesuffix(EXTENSION)))

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        """Of the format, the names of namespace and event hub in their places."""
        known = {"Namespace": self.namespace, "EventHub": self.event_hub}
        return tuple(Piece(None, known[each.text]) if each.token in known else each for each in self._written)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_expression(self._pieces) + f"(?:{re.escape(EXTENSION)})?")

    @cached_property
    def prefix(self) -> str:
        """What every name begins with."""
        return _beginning(self._pieces, {})

    def name(self, partition: str, opened: datetime, extension: str = EXTENSION) -> str:
        """The name of the blob of a capture window that began then, in UTC."""
        values = _digits(opened) | {"PartitionId": partition}
        return "".join(each.text if each.token is None else values[each.token] for each in self._pieces) + extension

    def parse(self, name: str) -> tuple[str, datetime] | None:
        """The partition of the blob with this name, and when its window began, in UTC.

        None where the name is not one that Capture gives.
        """
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        year, month, day, hour, minute, second = map(int, match.group(*WIDTHS))
        try:
            return match["PartitionId"], datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None

    def prefixes(self, first: datetime, last: datetime, partitions: Iterable[str]) -> list[str]:
        """As few beginnings as tell the names of these windows from others, as far as the format allows; in order.

        No name has two of them. Where the format has other tokens before the partition or the time, they are shorter
        and others' names begin so too. Without any partition: of all partitions.
        """
        chosen = [{"PartitionId": partition} for partition in partitions] or [{}]
        periods = list(_periods(first, last))
        return _shortest(_beginning(self._pieces, values | period) for values in chosen for period in periods)

    def folder_of_partitions(self) -> str | None:
        """What the names have before their partition, where the folders beside each other there tell all partitions.

        None where the format has a time before the partition, or no `/` soon behind it.
        """
        return self._folders[0] if self._folders else None

    def partition_of_folder(self, folder: str) -> str | None:
        """The partition of such a folder, which ends in `/`; None where it is none of Capture's."""
        match = self._folders[1].fullmatch(folder) if self._folders else None
        return match["PartitionId"] if match else None

    @cached_property
    def _folders(self) -> tuple[str, re.Pattern[str]] | None:
        place = [each.token for each in self._pieces].index("PartitionId")
        before, after = self._pieces[:place], self._pieces[place + 1 :]
        if any(each.token or "\\" in each.text for each in before):
            return None
        up_to: list[Piece] = []
        for each in after:
            if each.token is None and "/" in each.text:
                up_to.append(Piece(None, each.text.partition("/")[0] + "/"))
                whole = (*before, self._pieces[place], *up_to)
                return "".join(each.text for each in before), re.compile(_expression(whole))
            if each.token not in (None, "Year", "Month", "Day"):
                break
            up_to.append(each)
        return None


def _expression(written: Iterable[Piece]) -> str:
    """The pattern of the pieces; a token that stands again has the same value. A backslash may have become a slash."""
    seen: set[str] = set()
    parts = []
    for each in written:
        if each.token is None:
            parts.append(re.escape(each.text).replace("\\\\", r"[\\/]"))
        elif each.token in seen:
            parts.append(f"(?P={each.token})")
        else:
            seen.add(each.token)
            value = _PARTITION if each.token == "PartitionId" else f"[0-9]{{{WIDTHS[each.token]}}}"
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


def _periods(first: datetime, last: datetime) -> Iterator[dict[str, str]]:
    """The years, months, days and hours, as few as possible, that hold a range: the values of their tokens."""
    start = first.replace(minute=0, second=0, microsecond=0)
    end = last.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if end - start > _BY_HOURS:
        start = start.replace(hour=0)
        end = (end + timedelta(hours=23)).replace(hour=0)
    while start < end:
        tokens, following = next(period for period in _beginning_at(start) if period[1] <= end)
        values = _digits(start)
        yield {token: values[token] for token in tokens}
        start = following


def _beginning_at(start: datetime) -> Iterator[tuple[tuple[str, ...], datetime]]:
    """The tokens of the periods that begin then, longest first, and when the next one begins."""
    if start.hour == 0 and start.day == 1:
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
