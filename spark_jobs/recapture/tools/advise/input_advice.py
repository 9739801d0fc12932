"""The advice on the tolerances of one input: shares, the smallest settings and what they cost."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.pages.page import NONE, duration
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.tools.advise.choice import SHARES, shown, smallest
from recapture.tools.advise.counting import ToleranceCounts
from recapture.tools.advise.keys import Key
from recapture.tools.advise.reading import InputCounts
from recapture.tools.advise.tolerances import NO_LIMIT, Setting


@dataclass(frozen=True)
class InputAdvice:
    """The advice on one input."""

    counts: InputCounts
    own: Setting
    """Setting of the job."""

    @property
    def alias(self) -> str:
        return self.counts.source.compiled.alias

    @cached_property
    def totals(self) -> dict[Key, ToleranceCounts]:
        """Counts of all partitions by key, the query's key first."""
        return {key: self.counts.total(key) for key in self.counts.keys.all}

    def smallest(self, key: Key) -> dict[float, Setting | None]:
        """Return the smallest setting that keeps each of SHARES unchanged; None if there is none."""
        return {share: smallest(self.totals[key], self.counts.source.tolerances, share) for share in SHARES}

    def complete_after(self, late: int | None) -> int:
        """Return how long after its end a slice is complete, in seconds (docs/time-model.md, section 3.3)."""
        skew = MAX_CLOCK_SKEW // TICKS_PER_SECOND if self.counts.source.definition.by_enqueued_time else 0
        return (late or 0) + skew

    def complete_text(self, late: int | None) -> str:
        """Return when a slice that ends at E is complete. Without a limit, later events can still change it."""
        after = self.complete_after(late)
        complete = f"E + {duration(after)}" if after else "E"
        return f"{complete}, never final" if late is None else complete

    def outcome(self, key: Key, setting: Setting, partition: str | None = None) -> dict[str, int]:
        """Return the events by verdict with a setting; those of one partition, or of all."""
        counts = self.totals[key] if partition is None else self.counts.partitions[partition].by_key[key]
        late, out_of_order = self._index(setting)
        return dict(zip(VERDICTS, counts.verdicts[late, out_of_order].tolist(), strict=True))

    def share(self, key: Key, setting: Setting, partition: str | None = None) -> float | None:
        """Return the share of unchanged events in one partition, or in all; None if no tolerance matters to any."""
        counts = self.totals[key] if partition is None else self.counts.partitions[partition].by_key[key]
        return int(counts.on_time[self._index(setting)]) / counts.tolerable if counts.tolerable else None

    def _index(self, setting: Setting) -> tuple[int, int]:
        compared = self.counts.source.tolerances
        return compared.late.index(setting.late), compared.out_of_order.index(setting.out_of_order)

    def settings(self, key: Key) -> Iterator[Setting]:
        """Yield the settings to show with a key, by late tolerance, then by out-of-order tolerance."""
        chosen = shown(self.totals[key], self.counts.source.tolerances, self.own)
        return (Setting(late, out_of_order) for late in chosen.late for out_of_order in chosen.out_of_order)

    @property
    def summary(self) -> dict[str, Any]:
        """The advice in JSON types."""
        counts = self.counts
        return {
            "alias": self.alias,
            "arrival_time": str(counts.source.section.arrival_time),
            "interval_seconds": counts.source.section.interval_seconds,
            "blobs": counts.blobs,
            "events": counts.events,
            "largest_lateness_seconds": counts.largest_lateness / TICKS_PER_SECOND,
            "duplicates": {name: partition.duplicates for name, partition in counts.partitions.items()},
            "keys": [self._summary_of_key(key) for key in counts.keys.all],
            "clocks": {
                "key": counts.keys.devices.names,
                "devices": counts.devices,
                "wrong": [asdict(clock) for clock in counts.wrong_clocks],
            },
            "disagreements": [asdict(disagreement) for disagreement in counts.disagreements],
            "damaged": counts.damaged,
            "incomplete": counts.incomplete,
        }

    def _summary_of_key(self, key: Key) -> dict[str, Any]:
        return {
            "over": key.names,
            "of_query": key == self.counts.keys.own,
            "early": self.totals[key].early,
            "largest_disorder_seconds": self.counts.largest_disorder[key][-1] / TICKS_PER_SECOND,
            "smallest": [
                {"keep": share, **(self._summary_of_setting(key, setting) if setting else {})}
                for share, setting in self.smallest(key).items()
            ],
            "settings": [
                {
                    **self._summary_of_setting(key, setting),
                    **self.outcome(key, setting),
                    "partitions": {name: self.outcome(key, setting, name) for name in self.counts.partitions},
                }
                for setting in self.settings(key)
            ],
        }

    def _summary_of_setting(self, key: Key, setting: Setting) -> dict[str, Any]:
        return {
            "late_seconds": NO_LIMIT if setting.late is None else setting.late,
            "out_of_order_seconds": setting.out_of_order,
            "unchanged_share": self.share(key, setting),
            "complete_after_seconds": self.complete_after(setting.late),
        }


def percent(share: float | None) -> str:
    """Return a share in percent, rounded down, so that only all is 100%; an en dash for None."""
    return NONE if share is None else f"{math.floor(10_000 * share) / 100:.2f}%" if share < 1 else "100%"
