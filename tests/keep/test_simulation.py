"""A seeded world under a clock of its own: whatever happens to updates and to the archive, the tables end up right.

Blobs come late, are replaced, damaged, vanish and return; the query changes; people backfill, roll back, approve runs,
request slices and cancel requests; storage lists stale results; updates are missed, run twice and meet each other and
people; updates, backfills, rollbacks and approvals fail, and are killed at any request. A failure names the seed of its
world: it is the same every time.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from recapture.archive.definitions import ArrivalTime, RunDefinition, version_of
from recapture.definition.sections import Schedule
from recapture.errors import AuditError, PermanentError, RunError
from recapture.keep.due import Tick
from recapture.keep.requests import cancelled, with_request
from recapture.run_files.files import RunFiles
from recapture.run_files.marks import STOPPED_RUNS
from recapture.run_files.work import WORK, Request, Work
from recapture.storage.container import Blob
from recapture.table.publications import Entry
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice
from tests.draws import SLOW_EXAMPLES, examples
from tests.keep.memory import Clock, KilledError
from tests.keep.memory_tables import Rows
from tests.keep.simulated import (
    EARLY,
    INTERVAL,
    LENGTH,
    PARTITIONS,
    SEARCH_HOURS,
    TELEMETRY,
    Deployment,
    Stopped,
    opened_at,
)

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
SINCE = BEGIN + timedelta(hours=3)
HOURS = 12
MOST_REQUESTS = 32
"""Largest number of requests of an update that has nothing to do, if nothing waits."""
REQUESTS_OF_OLDER = 32
"""Largest number of requests for an older slice that waits: one listing."""


@dataclass
class ReadSlice:
    """What a slice reads by a plan."""

    is_complete: bool
    read: str
    blobs: list[Blob]


@dataclass
class World:
    """A deployment, what happens to it, and what must always be true of it."""

    seed: int

    def __post_init__(self) -> None:
        self.draw = draw = random.Random(self.seed)
        arrival_time = draw.choice(list(ArrivalTime))
        definition = RunDefinition(
            name="telemetry",
            engine="1",
            canonical_query="query 0",
            inputs=[replace(TELEMETRY, arrival_time=arrival_time)],
        )
        schedule = Schedule(
            since=SINCE,
            until=draw.choice([None, None, BEGIN + timedelta(hours=8)]),
            at_most_slices=draw.choice([1, 3, 24]),
            at_most_bytes=draw.choice([None, None, 400]),
            quiet_minutes=draw.choice([0, 30]),
            provisional=draw.choice([False, True]),
            late_data=draw.choice(["republish", "republish", "mark"]),
            outdated=draw.choice(["recompute", "keep"]),
        )
        refuses_loss, has_feed = draw.choice([True, False]), draw.random() < 0.3
        self.deployment = Deployment(definition, schedule, Clock(BEGIN), refuses_loss, has_feed)
        self.queries = 0
        self.to_write: list[tuple[datetime, str]] = []
        """Blobs that Capture has not written yet, with the times at which it will."""
        self.opened = BEGIN
        self.disturbances = 0
        """Number of updates and people that were killed or refused a request."""
        self.replayed, self.versions = Rows(), Counter[str]()
        """Rows of the feed up to the versions that were looked at, and the number of these versions by table."""
        self.published: dict[str, set[tuple[str, str]]] = {name: set() for name in self.deployment.tables.others}
        """Slices with the files that were ever published for them, by table."""

    @property
    def now(self) -> datetime:
        return self.deployment.clock.now

    def live(self) -> None:
        """Let the hours pass. Then everything that was broken is mended, and updates run until none has work."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (12, self.update),
            (4, self.update_twice),
            (6, self.killed),
            (4, self.met_by_another),
            (3, self.refused),
            (6, self.change_blob),
            (2, self.person_backfills),
            (1, self.person_rolls_back),
            (2, self.person_approves),
            (2, self.person_requests),
            (1, self.person_cancels),
            (1, self.change_definition),
        ]
        weights = [weight for weight, _ in actions]
        while self.now < BEGIN + timedelta(hours=HOURS):
            self.pass_time(self.draw.choice([1, 7, 20, 45]))
            (_, action), *_ = self.draw.choices(actions, weights)
            action()
            self.check_tables()
        self.mend()
        self.settle()

    # What happens to the archive

    def pass_time(self, minutes: float) -> None:
        """Advance the clock; Capture opens a blob for each interval and partition, and writes those that are due."""
        self.deployment.clock.advance(minutes)
        while self.opened + INTERVAL <= min(self.now, BEGIN + timedelta(hours=HOURS)):
            for partition in range(PARTITIONS):
                delay = timedelta(seconds=self.draw.randrange(60))
                if self.draw.random() < 0.08:
                    delay = timedelta(minutes=self.draw.randrange(1, 60 * SEARCH_HOURS - 75))
                name = f"contoso/telemetry/{partition}/{self.opened:%Y/%m/%d/%H/%M/%S}.avro"
                self.to_write.append((self.opened + INTERVAL + delay, name))
            self.opened += INTERVAL
        present, clock = self.now, self.deployment.clock
        for time, name in sorted(self.to_write):
            if time <= present:
                clock.now = time
                self.deployment.archive.write(name, self.content(name))
                self.to_write.remove((time, name))
        clock.now = present
        self.tend_archive()

    def tend_archive(self) -> None:
        """Replace poisoned and damaged blobs, and restore those whose loss is refused, before they are too old."""
        archive = self.deployment.archive
        for name in archive.names(present=False):
            if self.deployment.refuses_loss and self.age(name) > self.reach:
                archive.restore(name)
        for name in archive.names():
            if self.age(name) > self.reach and (archive.read_current(name) or b"").startswith((b"poison", b"damaged")):
                archive.write(name, b"event")

    def content(self, name: str) -> bytes:
        kind = self.draw.choices(["event", "odd", "poison", "damaged"], [32, 6, 1, 1])[0]
        return f"{kind} {self.draw.randrange(1000)}".encode()

    def change_blob(self) -> None:
        """Replace, delete or restore a blob that is as young as changed blobs may be."""
        archive = self.deployment.archive
        kind = self.draw.choice(["replace", "delete", "restore"])
        names = [name for name in archive.names(present=kind != "restore") if self.age(name) < self.reach]
        if names:
            name = self.draw.choice(names)
            if kind == "replace":
                archive.write(name, self.content(name))
            elif kind == "delete":
                archive.delete(name)
            else:
                archive.restore(name)

    @property
    def reach(self) -> timedelta:
        """Age up to which a blob may change."""
        return timedelta(hours=SEARCH_HOURS) - 2 * INTERVAL - timedelta(minutes=45)

    def age(self, name: str) -> timedelta:
        return self.now - opened_at(name)

    def change_definition(self) -> None:
        """Change the query or the late tolerance, which decides the arrivals that a slice reads."""
        definition = self.deployment.definition
        if self.draw.random() < 0.5:
            self.queries += 1
            self.deployment.definition = replace(definition, canonical_query=f"query {self.queries}")
        else:
            policies = Policies(0, ticks.from_seconds(self.draw.choice([300, 600, 1200])), EARLY, adjust=True)
            inputs = [replace(definition.inputs[0], policies=policies)]
            self.deployment.definition = replace(definition, inputs=inputs)

    # What people do

    def person_backfills(self) -> None:
        """Compute up to three slices that have ended, complete or not; the audit may stop the run."""
        ended = (ticks.from_datetime(self.now) - ticks.from_datetime(SINCE)) // LENGTH
        if ended > 0:
            first = self.draw.randrange(ended)
            start = ticks.from_datetime(SINCE) + first * LENGTH
            last = min(first + self.draw.randint(1, 3), ended)
            with suppress(AuditError, RunError):
                self.deployment.backfill(start, start + (last - first) * LENGTH)

    def person_rolls_back(self) -> None:
        if published := sorted(self.deployment.published()):
            self.deployment.rollback(self.draw.choice(published))

    def person_approves(self) -> None:
        """Approve a run that its audit stopped. It is published unless a later run was published since its audit."""
        if not self.deployment.stopped:
            return
        stopped = self.draw.choice(self.deployment.stopped)
        later, possibly = self.published_later(stopped), self.published_later(stopped, certainly=False)
        try:
            self.deployment.approve(stopped)
        except PermanentError:
            possibly = possibly or self.published_later(stopped, certainly=False)
            assert possibly, "only a later run keeps an approved one from being published"
        else:
            assert not later, "an approved run replaces no later one"

    def published_later(self, stopped: Stopped, *, certainly: bool = True) -> list[str]:
        """Return the slices that hold another run, which was published after the audit of the stopped one.

        A rollback may restore an earlier publication, which is not published by that. If another run was published and
        rolled back since, the approval may be refused all the same: then return the slice unless `certainly`.
        """
        deployment = self.deployment
        log = deployment.store.logs.get(deployment.tables.publications.url, [])
        later = []
        for start in stopped.publications:
            entries = [deployment.entries[held[start].path] if start in held else Entry(None) for held in log]
            if not entries:
                continue
            before, now = [Entry(None), *entries[: stopped.version + 1]], entries[-1]
            is_restored = now.taken_back is not None and now.current in [entry.current for entry in before]
            is_restored &= certainly or now.taken_back == before[-1].run
            if now.run not in (None, stopped.run, before[-1].run) and not is_restored:
                later.append(start)
        return later

    def person_requests(self) -> None:
        """Request up to three slices that have ended, kept or not, for now or for later."""
        oldest = ticks.from_datetime(SINCE) - 2 * LENGTH
        ended = (ticks.from_datetime(self.now) - oldest) // LENGTH
        if ended > 0:
            first = self.draw.randrange(ended)
            start, now = oldest + first * LENGTH, ticks.from_datetime(self.now)
            end = start + (min(first + self.draw.randint(1, 3), ended) - first) * LENGTH
            number = len(WORK.read(self.deployment.run_files).requests)
            at, only = now + self.draw.choice([0, 0, LENGTH]), self.draw.choice([(), (), (start,), (end - LENGTH,)])
            request = Request(str(number), "ann", start, end, at, now, only=only)
            WORK.change(self.deployment.run_files, lambda work: with_request(work, request))

    def person_cancels(self) -> None:
        """Try to cancel a request."""
        requests = WORK.read(self.deployment.run_files).requests
        if requests:
            id, now = self.draw.choice(requests).id, ticks.from_datetime(self.now)
            WORK.change(self.deployment.run_files, lambda work: cancelled(work, id, "bob", now))

    # What happens to updates

    def update(self) -> None:
        """Run an update and compare what it does with the oracle."""
        self.deployment.archive.lag = timedelta(minutes=self.draw.choice([0, 0, 0, 5]))
        self.compared_update()
        self.deployment.archive.lag = timedelta()

    def update_twice(self) -> None:
        """Run an update again at once: it does not compute again what the first one published."""
        self.deployment.archive.lag = timedelta(minutes=self.draw.choice([0, 5]))
        _, published = self.compared_update()
        computed, _ = self.compared_update()
        assert not published & computed, [*map(ticks.to_text, published & computed)]
        self.deployment.archive.lag = timedelta()

    def compared_update(self) -> tuple[set[int], set[int]]:
        """Run an update, compare it with the oracle, and return the slices that it computed and published."""
        certain, possible = self.due()
        number = len(self.deployment.computations)
        stopped = {last.run for start in self.kept() if (last := self.last_stopped(start)) is not None}
        due, outcomes = self.deployment.update()
        self.compare(due, certain, possible)
        runs = self.deployment.computations[number:]
        computed = [start for run in runs for start in run.slices]
        assert len(computed) == len(set(computed)), "an update computes a slice once"
        asked = [run for run in runs if run.by is not None and any(slice_.requests for slice_ in run.by.slices)]
        again = [run.run for run in runs if run.run in stopped and run not in asked]
        assert not again, f"their audits stopped these runs: {again}"
        return set(computed), {start for run in runs if run.run in outcomes for start in run.slices}

    def killed(self) -> None:
        """Kill an update or a person at a request, if it has so many."""

        def kill() -> None:
            self.disturbances += 1
            raise KilledError

        self.disturbed(self.anybody(), kill)

    def refused(self) -> None:
        """Let the storage refuse one request of an update or a person."""

        def refuse() -> None:
            self.disturbances += 1
            raise RunError("the storage refuses")

        self.disturbed(self.anybody(), refuse)

    def anybody(self) -> Callable[[], None]:
        """Return an update, or somebody who changes what is published."""
        people = [self.person_rolls_back, self.person_backfills, self.person_approves]
        return self.draw.choice([*[self.undisturbed_update] * 4, *people])

    def met_by_another(self) -> None:
        """Let another update, or a person, do everything between two requests of an update or a person."""
        people = [self.person_rolls_back, self.person_backfills, self.person_approves]
        others = [*people, self.person_requests, self.person_cancels]
        other = self.draw.choice([*[self.undisturbed_update] * 3, *others])
        first = self.anybody()
        number = len(self.deployment.computations)
        self.disturbed(first, other)
        if first == other == self.undisturbed_update:
            runs = self.deployment.computations[number:]
            assert len({run.slices for run in runs}) == len(runs), "two updates at once compute no range twice"
            published = [start for run in runs if run.is_published for start in run.slices]
            assert len(published) == len(set(published)), "two updates at once publish no slice twice"

    def undisturbed_update(self) -> None:
        with suppress(RunError):
            self.deployment.update()

    def disturbed(self, call: Callable[[], None], effect: Callable[[], None]) -> None:
        """Call `call`, and `effect` at one of its requests."""
        requests = self.deployment.requests
        requests.at(int(self.draw.expovariate(1 / 60)), effect)
        with suppress(KilledError, RunError):
            call()
        requests.never()

    # What must be true

    def check_tables(self) -> None:
        """In every version, readers see what was published for each slice, whole; the feed tells every change."""
        deployment, store = self.deployment, self.deployment.store
        for held in self.new_versions(deployment.tables.publications.url):
            entries = {start: deployment.entries[file.path].current for start, file in held.items()}
            for start, entry in entries.items():
                for name, file in ({} if entry is None else entry.files).items():
                    self.published[name] |= set() if file is None else {(start, file.path)}
        for name, table in deployment.tables.others.items():
            for held in self.new_versions(table.url):
                assert {(start, file.path) for start, file in held.items()} <= self.published[name]
                if table.change_feed:
                    deleted, inserted = store.feed(table.url, self.versions[table.url] - 1)
                    assert not deleted & inserted, "a row that did not change is not in the feed"
                    assert deleted <= self.replayed
                    self.replayed += inserted
                    self.replayed -= deleted
                    rows = (store.rows(table.url, start, file) for start, file in held.items())
                    assert self.replayed == sum(rows, Rows()), "the feed gives the table"

    def new_versions(self, url: str) -> Iterator[dict[str, File]]:
        """Yield what the versions of a table hold that were not looked at yet."""
        for held in self.deployment.store.logs.get(url, [])[self.versions[url] :]:
            self.versions[url] += 1
            yield held

    def due(self) -> tuple[set[int], set[int]]:
        """Return the slices that are certainly due, and those that may be, looked at one by one."""
        certain, possible = set(), set()
        now, deployment = ticks.from_datetime(self.now), self.deployment
        kept, work = self.kept(), WORK.read(deployment.run_files)
        requested = (
            start
            for request in work.requests
            for start in range(request.start, request.end, LENGTH)
            if not request.only or start in request.only
        )
        starts = sorted({*kept, *requested})

        def planned(definition: RunDefinition) -> dict[int, ReadSlice]:
            """Return what every slice reads now; nothing if no blob at all is listed."""
            try:
                manifest = deployment.plan(starts[0], starts[-1] + LENGTH, definition)
            except RunError:
                return {}
            planned = manifest.input("telemetry")
            slices = zip(planned.slices, manifest.reads, planned.blobs_by_slice(), strict=True)
            return {
                slice_.slice.start: ReadSlice(not slice_.incomplete_partitions, read, [pinned.blob for pinned in blobs])
                for slice_, read, blobs in slices
            }

        plans = cache(lambda digest: planned(deployment.definitions[digest]))

        def read_with(start: int, digest: str) -> ReadSlice:
            return plans(digest)[start]

        present = planned(deployment.definition) if starts else {}
        for start, read in present.items():
            is_due = self.is_due(start, now, read, partial(read_with, start), work)
            if is_due is not False:
                possible.add(start)
            if is_due:
                certain.add(start)
        return certain, possible

    def is_due(
        self, start: int, now: int, present: ReadSlice, read_with: Callable[[str], ReadSlice], work: Work
    ) -> bool | None:
        """Return whether a slice is due; None if that depends on when an update first missed deleted blobs.

        `present` is what the slice reads now, and `read_with` returns what it reads now with an earlier definition.
        """
        deployment = self.deployment
        entry = deployment.entry(start)
        is_early = (
            deployment.schedule.provisional and entry.current is None and any(blob.size for blob in present.blobs)
        )
        if not present.is_complete and not is_early:
            return False
        if any(lease.start <= start < lease.end and now < lease.until for lease in work.leases):
            return False
        if any(request.at <= now and request.wants(start, start + LENGTH) for request in work.requests):
            return True
        if start not in self.kept() or entry.taken_back is not None or self.is_stopped_alone(start, present.read):
            return False
        if self.failed_just_now(start, present.read, now, work):
            return False
        current = entry.current
        if current is None or current.provisional:
            return True
        if deployment.schedule.outdated == "recompute" and current.parts != deployment.parts:
            return True
        listed = read_with(current.definition)
        if current.read == listed.read or deployment.schedule.late_data == "mark":
            return False
        then = {blob.name: version_of(blob) for blob in self.blobs_read(current.run, start)}
        differing = [blob for blob in listed.blobs if then.get(blob.name) != version_of(blob)]
        quiet = 60 * deployment.schedule.quiet_minutes * ticks.TICKS_PER_SECOND
        if any(now - ticks.from_datetime(blob.last_modified) < quiet for blob in differing):
            return False
        if then.keys() - {blob.name for blob in listed.blobs} and quiet:
            return None
        return True

    def blobs_read(self, run: str, start: int) -> list[Blob]:
        """Return the blobs that a run read for a slice, from its manifest."""
        planned = RunFiles(self.deployment.run_files, run).manifest().input("telemetry")
        by_slice = zip(planned.slices, planned.blobs_by_slice(), strict=True)
        slice_ = Slice(start, start + LENGTH)
        return next([pinned.blob for pinned in blobs] for read, blobs in by_slice if read.slice == slice_)

    def is_stopped_alone(self, start: int, read: str) -> bool:
        """Return whether the last run of the slice was stopped, had no other slice, and would be stopped again."""
        stopped = self.last_stopped(start)
        return stopped is not None and len(stopped.publications) == 1 and self.repeats(stopped, start, read)

    def repeats(self, stopped: Stopped, start: int, read: str) -> bool:
        """Return whether a run that its audit stopped would be stopped again."""
        publication = stopped.publications[ticks.to_text(start)]
        return publication.read == read and publication.parts == self.deployment.parts

    def failed_just_now(self, start: int, read: str, now: int, work: Work) -> bool:
        """Return whether the last run of the slice failed, had no other slice, and is not tried again yet.

        A run that its audit stopped did not fail: it says more of the slice than an earlier failure.
        """
        stopped = self.last_stopped(start)
        has_stop = stopped is not None and self.repeats(stopped, start, read)
        audited = ticks.from_datetime(stopped.at) if stopped is not None and has_stop else 0
        for failure in work.failures:
            if start in failure.slices and failure.end - failure.start == LENGTH:
                is_over = self.deployment.entry(start).run != failure.runs.get(ticks.to_text(start))
                same = failure.parts == self.deployment.parts and failure.read.get(ticks.to_text(start), read) == read
                pause = max(failure.last - failure.first, 15 * 60 * ticks.TICKS_PER_SECOND)
                return not is_over and same and audited < failure.last and now < failure.last + pause
        return False

    def last_stopped(self, start: int) -> Stopped | None:
        """Return the last stopped run of a slice, the shortest one of the same second.

        None if the slice was published or rolled back since.
        """
        deployment, text = self.deployment, ticks.to_text(start)
        entry = deployment.entry(start)
        changed = deployment.store.last_change(deployment.tables.publications.url, text)
        runs = [run for run in deployment.stopped if text in run.publications and run.version >= changed]
        runs = [
            run for run in runs if run.run not in (entry.run, entry.taken_back) or self.is_stopped_again(run, start)
        ]
        return max(runs, key=lambda run: (run.at, -len(run.publications)), default=None)

    def is_stopped_again(self, stopped: Stopped, start: int) -> bool:
        """Return whether a slice holds the run, published before the slice was complete, and its audit came later."""
        current = self.deployment.entry(start).current
        is_held = current is not None and current.run == stopped.run and current.provisional
        return is_held and not stopped.publications[ticks.to_text(start)].provisional

    def compare(self, due: Tick, certain: set[int], possible: set[int]) -> None:
        """Compare what an update does with the oracle."""
        taken = [slice_.start for range_ in due.ranges for slice_ in range_.slices]
        left = [slice_.start for slice_ in due.left]
        assert certain <= {*taken, *left} <= possible, [*map(ticks.to_text, {*taken, *left} ^ certain)]
        retried = {slice_.start for range_ in due.ranges for slice_ in range_.slices if slice_.is_retry}
        requested = {slice_.start for range_ in due.ranges for slice_ in range_.slices if slice_.requests}
        others = set(taken) - retried - requested - {max(taken, default=0)}
        behind = [slice_.start for slice_ in due.left if not slice_.is_retry]
        assert not others or min(others) > max(behind, default=-1), "the newest slices go first"
        assert not retried or all(slice_.is_retry for slice_ in due.left), "what failed alone goes last"
        assert len(taken) <= self.deployment.schedule.at_most_slices
        assert taken or not certain

    # The end

    def mend(self) -> None:
        """Let Capture write everything, and people mend the archive and what they rolled back."""
        end = self.now + timedelta(hours=SEARCH_HOURS)
        while self.now < end or self.to_write:
            self.pass_time(45)
            self.undisturbed_update()
        for start in self.kept():
            if self.deployment.entry(start).taken_back is not None:
                with suppress(AuditError):
                    self.deployment.backfill(start, start + LENGTH)

    def kept(self) -> range:
        """Return the starts of the slices that updates keep."""
        end = min(self.now, self.deployment.schedule.until or self.now)
        return range(ticks.from_datetime(SINCE), ticks.from_datetime(end) // LENGTH * LENGTH, LENGTH)

    def settle(self) -> None:
        """Run updates until none has work, and look at the end."""
        for _ in range(60):
            due, outcomes = self.deployment.update()
            self.check_tables()
            assert not any(isinstance(outcome, RunError) for outcome in outcomes), outcomes
            if any(slice_.waits_for[0].startswith(("2024", "the update")) for slice_ in due.waiting):
                self.deployment.clock.advance(31)
            elif not due.ranges:
                self.check_end(due)
                return
        raise AssertionError("updates always find work")

    def check_end(self, due: Tick) -> None:
        """The tables are those of one run over the archive; only a person's decision, or a rule, may prevent that."""
        self.check_requests()
        deployment, schedule = self.deployment, self.deployment.schedule
        waiting = {slice_.start: slice_.waits_for for slice_ in due.waiting}
        kept = self.kept()[:-2]
        shown, expected = deployment.shown(), deployment.expected(kept[0], kept[-1] + LENGTH)
        for start in kept:
            if shown.get(start) != expected[start]:
                assert all("a person" in hold for hold in waiting[start]), (ticks.to_text(start), waiting.get(start))
                assert deployment.refuses_loss or (schedule.late_data, schedule.outdated) != ("republish", "recompute")
            current = deployment.entry(start).current
            is_final = current is None or not current.provisional
            assert is_final or all("a person" in hold for hold in waiting[start]), "a provisional slice is revised"
        for name, table in deployment.tables.others.items():
            held = {start: files[0].path for start, files in deployment.open(table).held().items()}
            entries = {ticks.to_text(start): deployment.entry(start).current for start in deployment.published()}
            files = {start: entry.files[name] for start, entry in entries.items() if entry is not None}
            assert held == {start: file.path for start, file in files.items() if file is not None}
        self.check_idle(due)

    def check_requests(self) -> None:
        """A request ran once or was cancelled."""
        fulfilled = self.deployment.fulfilled
        again = sum(times - 1 for times in fulfilled.values())
        assert again <= self.disturbances, "only after a disturbance, a slice may be computed for a request again"
        for request in WORK.read(self.deployment.run_files).requests:
            starts = request.only or range(request.start, request.end, LENGTH)
            assert request.ended is not None, request
            if request.cancelled_by is not None:
                assert not any(fulfilled[request.id, start] for start in starts), request
            else:
                assert all(fulfilled[request.id, start] or ticks.to_text(start) in request.failed for start in starts)

    def check_idle(self, due: Tick) -> None:
        """An update that has nothing to do needs few requests."""
        deployment = self.deployment
        before = deployment.requests.count
        deployment.update()
        number = deployment.requests.count - before
        stopped = len(STOPPED_RUNS.runs(deployment.run_files))
        older = REQUESTS_OF_OLDER + len(due.waiting) + stopped if due.waiting or stopped else 0
        assert number <= MOST_REQUESTS + older, number


@given(st.integers(0, 2**32))
@settings(
    max_examples=3000 if settings.get_current_profile_name() == "deep" else examples(75),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=SLOW_EXAMPLES,
)
def test_whatever_happens_the_tables_end_as_those_of_one_run(seed: int) -> None:
    world = World(seed)
    with world.deployment.in_use():
        world.live()
