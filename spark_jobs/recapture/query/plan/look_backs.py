"""The plan of an output: the tables that it needs, and how far back each has to reach."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recapture.query.plan.panes import GroupsView
from recapture.query.plan.relations import OutputPlan, SelectedTable, Table
from recapture.time_model.windows import JoinedSide, Reach, Window


@dataclass(frozen=True)
class Planned:
    """The plan of an output, and what it needs."""

    plan: OutputPlan
    reaches: dict[str, list[Reach]]
    """Reaches of the windows and of the JOINs over each view of an input: the events that each needs."""
    windows: tuple[Window | JoinedSide, ...]
    """Windows, and sides of JOINs, over the events and over steps."""
    groups: tuple[GroupsView, ...]


def planned(steps: Sequence[Table], output: SelectedTable) -> Planned:
    """Return the plan of an output. Leave out the steps that it does not need.

    `steps` come in the order of WITH, with the JOINs before the steps that read them.
    """
    extra_look_backs, reaches = _extra_look_backs(steps, output)
    read = _read_by(steps, output)
    needed = [*(table for table in steps if table.name in read), output]
    windows = [window for table in [*steps, output] if table.name in extra_look_backs for window in table.windows]
    groups = (view for table in needed for view in _groups_views(table, extra_look_backs[table.name]))
    plan = OutputPlan(tuple(needed[:-1]), output, {table.name: extra_look_backs[table.name] for table in needed})
    return Planned(plan, reaches, tuple(dict.fromkeys(windows)), tuple(groups))


def _groups_views(table: Table, extra_look_back: int) -> Iterator[GroupsView]:
    """Yield the views of groups that a table reads."""
    for selection in table.selections if isinstance(table, SelectedTable) else ():
        if (view := selection.groups_view) is not None:
            yield replace(view, groups=replace(view.groups, look_back=extra_look_back))


def _extra_look_backs(steps: Sequence[Table], output: SelectedTable) -> tuple[dict[str, int], dict[str, list[Reach]]]:
    """Return how long before the slice the rows of each needed table must begin, in ticks, and the reaches by view.

    For example, a window of 5 minutes over the rows of a step needs that step's rows from 5 minutes before the slice.
    """
    extra = {output.name: 0}
    reaches: dict[str, list[Reach]] = {}
    names = {step.name for step in steps}
    for table in (output, *reversed(steps)):
        if table.name not in extra:
            continue
        for name, reach in table.reads(extra[table.name]):
            if name in names:
                extra[name] = max(extra.get(name, 0), reach.look_back)
            elif reach not in reaches.setdefault(name, []):
                reaches[name].append(reach)
    return extra, reaches


def _read_by(steps: Sequence[Table], output: SelectedTable) -> set[str]:
    """Return the tables that an output reads."""
    read = set(output.sources)
    for step in reversed(steps):
        if step.name in read:
            read |= {*step.sources}
    return read
