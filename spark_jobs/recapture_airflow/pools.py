"""The pools in which the DAGs compute slices."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from recapture.errors import DefinitionError
from recapture.execute.engine import Engine


@dataclass(frozen=True)
class Pools:
    """Names of Airflow's pools; None for the default pool, in which a DAG computes one range at a time."""

    spark: str | None = None
    """Pool of updates that Spark computes."""
    processes: str | None = None
    """Pool of updates that processes of a worker compute."""
    history: str | None = None
    """Pool of the runs by hand and of Airflow's backfills, so that updates do not wait for them."""

    @classmethod
    def named(cls, names: Mapping[str, str]) -> "Pools":
        """Return the pools with these names. Raise DefinitionError for a key that there is not."""
        known = [field.name for field in fields(cls)]
        for key in names.keys() - set(known):
            raise DefinitionError(f"pools has the key {key!r}: use {', '.join(known)}")
        return cls(**names)

    def of_update(self, engine: Engine) -> dict[str, Any]:
        """Return the arguments of the task in which an update computes slices."""
        return _arguments(self.spark if engine is Engine.SPARK else self.processes)

    def of_history(self) -> dict[str, Any]:
        """Return the arguments of the task in which a run by hand or a backfill computes slices."""
        return _arguments(self.history)


def _arguments(pool: str | None) -> dict[str, Any]:
    return {"max_active_tis_per_dag": 1} if pool is None else {"pool": pool}
