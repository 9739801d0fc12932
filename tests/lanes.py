"""How the workers of pytest-xdist share the files of the tests: one starts the services, another one starts Java."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SERVICES = frozenset({"airflow", "browser", "e2e", "process", "storage"})
"""Marks of the tests that start services or processes, or load Airflow."""


def place(marks: AbstractSet[str], length: int) -> tuple[int, int]:
    """Return the place of a file in the collection: files that need Spark are the last ones, other services the first.

    `marks` are those of its tests; `length` is 0 for the longest file of a lane. The longest files are at both ends.
    """
    if "spark" in marks:
        return 2, -length
    return (0 if marks & SERVICES else 1), length


class LaneScheduling(LoadFileScheduling):
    """Give the first worker the first files of the collection, the second one the last, and others those in between.

    So one worker runs the tests that need Spark, as long as it has some: every other one would start Java, too. The
    others begin with `long`, the longest files that need neither Spark nor services: a long file at the end would leave
    a core idle.
    """

    def __init__(self, config: pytest.Config, log: Any, long: Sequence[str]) -> None:
        super().__init__(config, log)
        self._long = long

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = next_file(int(node.gateway.id.removeprefix("gw")), list(self.workqueue), self._long)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """End the tests if a worker has been killed.

        xdist would give all its files to others, and wait for ever for the tests of those that it has finished.
        """
        test = super().remove_node(node)
        if test is not None:
            worker = node.gateway.id
            pytest.exit(
                f"the worker {worker} was killed while it ran {test}: look for what killed it, such as a full memory", 1
            )
        return test


def next_file(worker: int, left: Sequence[str], long: Sequence[str]) -> str:
    """Return the file that a worker runs next: the first worker the first of those left, the second one the last.

    Others run the first of `long` that is left, and then the file in the middle.
    """
    if worker < 2:
        return left[-worker]
    return next((file for file in long if file in left), left[len(left) // 2])
