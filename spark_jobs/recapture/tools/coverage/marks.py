"""How the pages show the state of a slice: its sign, why it is in this state, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from recapture.pages.page import number, share
from recapture.process.wording import counted
from recapture.run.outdated import in_words
from recapture.run.slice_state import State
from recapture.tools.coverage.activity import DagRun
from recapture.tools.coverage.states import SliceState

_MARKS = {
    State.AWAITING: ("?", "bad", "Answer the question."),
    State.BLOCKED: ("✕", "bad", "Read the report of the run, then correct the query, the policies or the suite."),
    State.FAILED: ("⚠", "bad", "Read the error. Updates try again after a pause; a request tries again at once."),
    State.PROVISIONAL: ("◌", "stale", "Nothing to do: an update computes it again later."),
    State.STALE: (
        "↻",
        "stale",
        "Updates compute it again, or request it if late data is only marked.",
    ),
    State.OUTDATED: ("≠", "stale", "Request it to have it computed with the present definition."),
    State.UNCHECKED: ("~", "stale", "Check for changed blobs, or request it."),
    State.MISSING: ("\N{EN DASH}", "missing", "Request or backfill it."),
    State.PAUSED: ("‖", "missing", "Unpause the DAG."),
    State.WARNINGS: ("!", "warning", "Read the report of the run."),
    State.RUNNING: ("▸", "waiting", "Nothing to do."),
    State.QUEUED: ("·", "waiting", "Nothing to do."),
    State.INCOMPLETE: ("…", "waiting", "Nothing to do: updates compute it when it is complete."),
    State.APPROVED: ("✎", "warning", "Nothing to do."),
    State.PUBLISHED: ("✓", "good", "Nothing to do."),
}
"""Sign, class and next step of each state, in the order in which a reader looks at them."""
SIGNS = {state: sign for state, (sign, _, _) in _MARKS.items()}
"""Sign of each state, so that colour is never the only one."""
KINDS = {state: kind for state, (_, kind, _) in _MARKS.items()}
"""Name of each state in the style sheet."""
STEPS = {state: step for state, (_, _, step) in _MARKS.items()}
"""What a reader does next about a slice in each state, in a sentence."""
FIRST_STATES = tuple(state for state in _MARKS if state not in (State.APPROVED, State.PUBLISHED))
"""States that a reader looks at first, in this order."""
URGENT_STATES = tuple(state for state, kind in KINDS.items() if kind in ("bad", "missing") or state is State.UNCHECKED)
"""States of slices that need a person."""
Audits = Mapping[str, Sequence[str]]
"""What failed in the audits of runs, by run, where that is known."""
_LONGEST = 240
"""Number of characters of an error or of a reason of an audit that is shown in a sentence."""


@dataclass(frozen=True)
class Access:
    """What the user may start, and where Airflow is."""

    airflow: str
    """Path under which Airflow is served; empty for the root."""
    root: str
    """Path under which the pages are served."""
    why_disabled: Mapping[str, str | None]
    """Why the user cannot start backfill, rollback and check, or request slices; None for what the user can do."""
    asks_for_approval: bool = False
    """Whether the pipeline asks a person about runs that their audits stopped."""
    waiting: str | None = None
    """Why no update carries out requests now; None if updates do."""

    def dag(self, dag_id: str) -> str:
        """Return the address of a DAG in Airflow."""
        return f"{self.airflow}/dags/{quote(dag_id, safe='')}"

    def dag_run(self, run: DagRun) -> str:
        """Return the address of a DAG run in Airflow."""
        return f"{self.dag(run.dag_id)}/runs/{quote(run.id, safe='')}"

    def question(self, run: DagRun) -> str:
        """Return the address of the question that a DAG run asks a person."""
        return f"{self.dag_run(run)}/tasks/approval/required_actions"

    def tab(self, run: DagRun) -> str:
        """Return the address of the tab of a DAG run that has the page of its run."""
        return f"{self.dag_run(run)}/plugin/recapture-run"

    def run(self, pipeline: str, run: str) -> str:
        """Return the address of the page of a run."""
        return f"{self.root}/{pipeline}/runs/{run}/"


def why(state: SliceState, audits: Audits) -> str:
    """Return why a slice is in its state, in sentences."""
    entry, kind = state.entry, state.state
    failures = audits.get(state.blocked_run or "")
    if state.staged_run:
        sentences = ["A later run passed its audit. It is staged, and waits until a person publishes or discards it."]
    elif kind in (State.AWAITING, State.BLOCKED) and failures:
        sentences = [f"The audit stopped the run: {_short(failures[0].partition(', such as ')[0])}"]
        sentences += [f"{counted(len(failures) - 1, 'other check')} failed, too."] if len(failures) > 1 else []
        sentences += ["A person is asked whether to publish it."] if kind is State.AWAITING else []
    elif kind is State.FAILED and state.error:
        sentences = [f"The last update failed: {_short(state.error)}"]
    elif kind is State.FAILED and state.dag_run and state.dag_run.failed_tasks:
        sentences = [f"The task {state.dag_run.failed_tasks[0]} failed: see its log."]
    elif kind is State.OUTDATED:
        sentences = [f"Published, but by another definition than the pipeline has now: {in_words([state.differing])}."]
    elif kind is State.MISSING and entry.taken_back:
        sentences = ["Its publication was rolled back, so nothing is published."]
    else:
        sentences = [kind.meaning]
    if state.run is not None and entry.input_events is not None:
        sentences.append(
            f"{number(entry.input_events)} events arrived, {share(entry.late_events, entry.input_events)} late."
        )
    if entry.missing_events or entry.missing_blobs:
        missing = f"{number(entry.missing_events or 0)} events and {number(entry.missing_blobs or 0)} blobs"
        sentences.append(f"Missing from the archive: {missing}.")
    return " ".join(sentences)


def step(state: SliceState) -> str:
    """Return what a reader does next about a slice, in a sentence."""
    if state.state is State.BLOCKED and state.staged_run:
        return "Read the report of the run, then publish or discard it from the command line."
    return STEPS[state.state]


def links(state: SliceState, pipeline: str, access: Access) -> list[tuple[str, str, bool]]:
    """Return where the next step for a slice leads: texts, addresses, and whether the address is one of Airflow."""
    dag_run = state.dag_run
    if dag_run is not None and dag_run.awaits_decision and state.state is State.AWAITING:
        question = ("Answer under Required Actions", access.question(dag_run), True)
        return [question, ("Report of the run", access.tab(dag_run), True)]
    if state.state is State.FAILED and dag_run is not None and dag_run.failed_tasks:
        tasks = (f"{access.dag_run(dag_run)}/tasks/{quote(task)}" for task in dag_run.failed_tasks)
        return [(f"Log of {task}", href, True) for task, href in zip(dag_run.failed_tasks, tasks, strict=True)]
    if dag_run is not None and dag_run.is_active:
        return [(f"DAG run {dag_run.id}", access.dag_run(dag_run), True)]
    if state.state in (State.PAUSED, State.QUEUED):
        return [(f"DAG {pipeline}.update", access.dag(f"{pipeline}.update"), True)]
    run = state.staged_run or state.blocked_run or state.run
    return [] if run is None else [("Report of the run", access.run(pipeline, run), False)]


def _short(text: str) -> str:
    """Return the first line of a text, shortened, as the end of a sentence."""
    line = " ".join(text.strip().splitlines()[0].split()) if text.strip() else "it gave no reason"
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST].rsplit(' ', 1)[0]} …"
    return shown if shown.endswith((".", "…")) else f"{shown}."
