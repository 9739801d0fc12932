"""How the workers of pytest-xdist share the files of the tests: one starts the services, and the others start Java."""

from collections.abc import Set as AbstractSet

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SERVICES = frozenset({"airflow", "browser", "e2e", "process", "storage"})
"""Marks of the tests that start services or processes, or load Airflow."""


def place(marks: AbstractSet[str], length: int) -> tuple[int, int]:
    """Return the place of a file in the collection: files that need Spark are the last ones, other services the first.

    `marks` are those of its tests; `length` is 0 for the longest file. The longest files are at both ends.
    """
    if "spark" in marks:
        return 2, -length
    return (0 if marks & SERVICES else 1), length


class LaneScheduling(LoadFileScheduling):
    """Give the first worker the first files of the collection, and the other workers the last ones."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id != "gw0":
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
