"""How many events fit into memory while rows are explained."""

from dataclasses import dataclass

from rich.filesize import decimal

from recapture.errors import RunError
from recapture.execute.memory import bytes_per_event, share_of_worker
from recapture.query.model import CompiledQuery

MORE_MEMORY = "give this machine or container more memory"


@dataclass
class Room:
    """How many events may be held, whatever input they are of."""

    most: int
    problem: str
    """What is said if there are more."""
    held: int = 0
    """Number of the events that are held."""

    def hold(self, events: int) -> None:
        """Count more events. Raise RunError if they do not fit."""
        self.held += events
        if self.held > self.most:
            raise RunError(self.problem)


def room_for(query: CompiledQuery, advice: str) -> Room:
    """Return the room for the events of a query; `advice` says what to do if it is too small."""
    share = share_of_worker(1)
    most = share // bytes_per_event(query)
    problem = (
        f"more than {most:,} events can matter, but only {most:,} fit into the {decimal(share)} of memory for them: "
        f"{advice}"
    )
    return Room(most, problem)
