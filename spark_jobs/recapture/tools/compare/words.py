"""The reasons of differences that do not follow from a given setting."""

DUPLICATES = "duplicates"
DIGITS = "last digits"
CHANGED_ARCHIVE = "changed archive"
OTHER_DEFINITION = "another definition"
ARCHIVED_TWICE = "archived twice"
RESTART = "restart"
ENQUEUED = "arrival by enqueued time"
DEADLINE = "session deadlines"
DOWNTIME = "downtime"
HOLE = "hole in the archive"
UNEXPLAINED = "unexplained"
BY_TIME = (DOWNTIME, HOLE)
"""Reasons that follow from times alone: nothing was computed to confirm them."""
MEANINGS = {
    DUPLICATES: "The live job wrote a row more than once.",
    DIGITS: "Floats differ in their last digits only: they were added in another order.",
    CHANGED_ARCHIVE: "The archive has changed since it was published: computed again, the slice has the live rows.",
    OTHER_DEFINITION: "The slice was published with another definition: with the present one, it has the live rows.",
    ARCHIVED_TWICE: "The archive has events twice, over an hour apart: with each of them once, the rows are equal.",
    RESTART: "The live job restarted within the window: computed from what arrived since, the rows are equal.",
    ENQUEUED: "With the enqueued time as arrival time, as in a live job, the rows equal the live ones.",
    DEADLINE: "The live job cut long sessions at other times: with its cuts, the rows are equal.",
    DOWNTIME: "The live job wrote no row for a while, or started within the window.",
    HOLE: "The archive lacks events of the slice.",
    UNEXPLAINED: "No assumption that was tried gives the live rows.",
}
"""What each reason means, as pages show it."""
SEPARATOR = "\n"
"""Separator of the causes of a reason."""


def words(reason: str) -> str:
    """Return a reason as people read it: its causes, with commas."""
    return ", ".join(reason.split(SEPARATOR))


def causes(reason: str) -> list[str]:
    """Return the causes that together are a reason."""
    return reason.split(SEPARATOR)
