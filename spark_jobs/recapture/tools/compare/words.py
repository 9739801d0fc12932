"""The reasons of differences that do not follow from a given setting."""

DUPLICATES = "duplicates"
DIGITS = "last digits"
CHANGED_ARCHIVE = "changed archive"
OTHER_DEFINITION = "another definition"
ENQUEUED = "arrival by enqueued time"
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
    ENQUEUED: "With the enqueued time as arrival time, as in a live job, the rows equal the live ones.",
    DOWNTIME: "The live job wrote no row for a while, or started within the window.",
    HOLE: "The archive lacks events of the slice.",
    UNEXPLAINED: "No assumption that was tried gives the live rows.",
}
"""What each reason means, as pages show it."""
