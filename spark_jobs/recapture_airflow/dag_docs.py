"""What Airflow shows of each DAG: when to use it, and when not."""

UPDATE = """
Brings the tables of the pipeline up to date: as `recapture update` does. The first task reads what the archive has
and what is published. If nothing is due, the other tasks are skipped. Otherwise the run computes the newest slices that
are due, at most `schedule.at_most_slices`. If more is due, the next run starts as soon as this one has ended.

**Where to look first.** The log of the task `due` says what is due and why, what waits and for what, and what is left.
The page Coverage shows the state of every slice.

**When to use it.** Unpause it to keep the tables up to date. Trigger it by hand if you do not want to wait for the
schedule. It needs no parameters, and a run that was missed, killed or repeated changes nothing in the end.

**When not to use it.** Do not use it to recompute slices that are up to date, or a range that you choose: use the DAG
that has the name of the pipeline, or `recapture request`.
"""
BACKFILL = """
Recomputes slices of the pipeline from its archive and publishes them if they pass their audit. It has no schedule: the
DAG whose name ends with `.update` computes what is due.

**Where to look first.** The page Coverage shows which slices are published, blocked, missing or still waiting for
Capture, and leads to their reports. The tab Recapture of a DAG run has the report of its run.

**When to use it.** Trigger it by hand, with `from` and `to`, to recompute a range at once: after the query, the
policies or the suite changed, or for hours before the pipeline existed. Or use Airflow's own backfill of this DAG,
which has one DAG run per slice: its date range gives the starts of the first and the last slice, and `from` and `to`
stay empty. Slices next to each other are computed in one more run, whose id begins with `together__`, and the runs of
slices that are up to date are skipped. The page Coverage starts runs too. With `at`, the run only makes a request, and
an update computes the range from that time on.

**When not to use it.** Do not use it for slices that Capture has not written yet: it refuses them, and the updates
compute them when they are complete. Do not use it to undo a publication: use the DAG whose name ends with `.rollback`.
Do not trigger it again after the audit stopped a run: the same input gives the same verdict. Correct the query, the
policies or the suite first, or let a person decide: the page Coverage says how.

A range is `(from, to]`, in whole slices and UTC. A run of the same blobs and the same query publishes nothing new.
"""
APPROVAL = """
Asks a person whether to publish a run that its audit stopped, and publishes it if the person approves.

**When to use it.** The updates start it. Answer under Required Actions.

**When not to use it.** Do not trigger it by hand. To compute a slice again, backfill it: its run asks, too.
"""
ROLLBACK = """
Takes back the last publication of each slice of a range: every table holds again what it held before.

**When to use it.** Trigger it by hand, with `from` and `to`, when a publication was wrong. If it fails or is run again,
it goes back only once.

**When not to use it.** Do not use it to correct rows: backfill the range instead, which replaces them.
"""
CHECK = """
Compares the archive with what the published slices of a range read of it. The page Coverage then shows as stale the
slices whose blobs were added, modified or deleted since. It changes no table.

**When to use it.** On its schedule, it checks the last seven days. Trigger it by hand, with `from` and `to`, to check
another range, for example after blobs were restored.

**When not to use it.** Do not use it to recompute stale slices: the updates do that.
"""
