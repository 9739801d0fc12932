"""Turn pipeline files into DAGs: they update tables, compute slices by hand, roll back and check."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from recapture.definition.packed import pack
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Schedule
from recapture.errors import DefinitionError
from recapture_airflow import backfill_tasks as tasks
from recapture_airflow import dag_docs, dag_forms
from recapture_airflow.broken_pipeline import BrokenPipeline
from recapture_airflow.pipeline_files import load_all
from recapture_airflow.pools import Pools
from recapture_airflow.slice_schedule import OLDEST, NewestFirst, SliceTimetable, every
from recapture_airflow.stage_tasks import Cluster, approval_tasks, backfill_tasks, update_tasks

LONGEST_UPDATE = timedelta(days=1)
"""Time after which an update fails, for example because a pool is missing, so that the next one begins."""
MOST_QUESTIONS = 100
"""Number of runs of a DAG that may be active at once: runs that wait for a person keep no others from starting."""
FROM_PIPELINE = object()
"""Schedule of updates that stands for `schedule.every_minutes` of the pipeline file."""


class RecaptureDags(dict[str, DAG]):
    """The DAGs of pipelines, by their ids. Airflow finds them when they are made.

    The process of a task reads the DAG file again, and needs one DAG. There, the others are made if they are looked up.

    `source` is a folder of pipeline files or one file, relative to the DAG file; or `variable://NAME` or an `https://`
    address, for a document with a pipeline or a list of pipelines. A pipeline that cannot be loaded is an import error
    under the name of its file, and does not affect the others. The arguments say how the DAGs run in this Airflow:

    * `schedule`: when updates begin, as any DAG's `schedule`; None for never. By default, the pipeline file says it.
      There is no `catchup`: an update computes whatever is due, however many updates were missed.
    * `owner`, `tags`: shown by Airflow. Every DAG also has the tag `recapture` and the names of its inputs.
    * `retries`, `retry_delay`: of every task.
    * `connection`: name of the connection to the cluster that computes slices, by default `spark_default`. Its type
      says which kind of cluster it is, such as `spark` or `databricks`. Pipelines with `engine: processes` need none.
    * `job`: settings of the job with which Databricks or Livy computes slices; see docs/clusters.md.
    * `pools`: names of the pools in which slices are computed, under `spark` and `processes` for updates with each
      engine, and `history` for runs by hand and Airflow's backfills. Create the pools in Airflow. Without a name, the
      tasks run in Airflow's default pool, and a DAG computes one range at a time.
    * `default_args`: further arguments of every task, such as `on_failure_callback` or `queue`.
    * further arguments of every DAG, such as `on_failure_callback` or `access_control`.
    """

    def __init__(
        self,
        source: str | Path = "pipelines",
        *,
        schedule: Any = FROM_PIPELINE,
        owner: str = "recapture",
        tags: Sequence[str] = (),
        retries: int = 2,
        retry_delay: timedelta = timedelta(minutes=1),
        connection: str = Cluster.connection,
        job: Mapping[str, Any] | None = None,
        pools: Mapping[str, str] | None = None,
        default_args: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Load the pipelines and make their DAGs. Raise DefinitionError if the source has none, or cannot be read."""
        dag_file = Path(sys._getframe(1).f_globals.get("__file__", "dags.py")).absolute()
        pipelines, errors = load_all(source, dag_file.parent)
        task_settings = {"owner": owner, "retries": retries, "retry_delay": retry_delay, **(default_args or {})}
        cluster = Cluster(connection, job or {})
        settings = Settings(schedule, task_settings, tuple(tags), cluster, Pools.named(pools or {}), arguments)
        super().__init__()
        self._makers = {
            dag_id: partial(DAGS[action], pipeline, settings)
            for pipeline in pipelines
            for action, dag_id in dag_forms.dag_ids_of(pipeline).items()
        }
        """Functions that make the DAGs, by their ids."""
        own = get_parsing_context().dag_id
        for dag_id in [own] if own in self._makers else self._makers:
            self[dag_id]
        for number, (file, message) in enumerate(errors.items()):
            with BrokenPipeline(number, file, dag_file, message):
                """Leaving the context registers it with Airflow, as it does with a DAG."""

    def __missing__(self, dag_id: str) -> DAG:
        dag = self[dag_id] = self._makers[dag_id]()
        return dag


@dataclass(frozen=True)
class Settings:
    """What the DAGs of several pipelines share."""

    schedule: Any = FROM_PIPELINE
    """When updates begin."""
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of every task."""
    tags: tuple[str, ...] = ()
    cluster: Cluster = field(default_factory=Cluster)
    pools: Pools = field(default_factory=Pools)
    dag_settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of every DAG."""


def dag_of(pipeline: Pipeline, settings: Settings, action: str, schedule: Any, description: str, **own: Any) -> DAG:
    """Return a DAG of a pipeline without its tasks. Raise DefinitionError for an argument that it has already."""
    fixed = {
        "description": description,
        "start_date": OLDEST,
        "catchup": False,
        "default_args": {
            "weight_rule": NewestFirst(),
            **settings.task_settings,
            "pre_execute": tasks.prepare,
        },
        "tags": list(dict.fromkeys(["recapture", *_tags_of_inputs(pipeline), *settings.tags])),
        **own,
    }
    for name in sorted(settings.dag_settings.keys() & (fixed.keys() | {"params"})):
        raise DefinitionError(f"RecaptureDags sets `{name}` of its DAGs itself: remove the argument")
    return DAG(dag_forms.dag_ids_of(pipeline)[action], schedule=schedule, **fixed, **settings.dag_settings)


def _tags_of_inputs(pipeline: Pipeline) -> list[str]:
    return [tag for section in pipeline.inputs for tag in section.tags]


def update(pipeline: Pipeline, settings: Settings) -> DAG:
    """Return the DAG that keeps the tables up to date, one run at a time: see `recapture update`."""
    minutes, schedule = (pipeline.schedule or Schedule()).every_minutes, settings.schedule
    with dag_of(
        pipeline,
        settings,
        "update",
        every(minutes) if schedule is FROM_PIPELINE else schedule,
        f"Keep the tables of {pipeline.name} up to date",
        max_active_runs=1,
        dagrun_timeout=LONGEST_UPDATE,
        doc_md=dag_docs.UPDATE,
    ) as dag:
        update_tasks(pipeline, settings.cluster, settings.pools)
    return dag


def approval(pipeline: Pipeline, settings: Settings) -> DAG:
    """Return the DAG that asks a person about runs of updates that their audits stopped."""
    with dag_of(
        pipeline,
        settings,
        "approval",
        None,
        f"Ask whether to publish runs of {pipeline.name} that their audits stopped",
        max_active_runs=MOST_QUESTIONS,
        params=dag_forms.run_param(),
        doc_md=dag_docs.APPROVAL,
        is_paused_upon_creation=False,
    ) as dag:
        approval_tasks(pipeline)
    return dag


def backfill(pipeline: Pipeline, settings: Settings) -> DAG:
    """Return the DAG that computes slices by hand and in Airflow's backfills. Its tasks are the stages of a run.

    It has the definition for the pages of the api-server, which cannot read the pipeline file.
    """
    with dag_of(
        pipeline,
        settings,
        "backfill",
        SliceTimetable(pipeline.slice_hours),
        f"{', '.join(section.source for section in pipeline.inputs)} to {', '.join(dag_forms.assets_of(pipeline))}",
        max_active_runs=MOST_QUESTIONS,
        params=dag_forms.range_params(
            "Empty: the run computes the slice of its data interval, the last one that has ended."
        )
        | dag_forms.later_param()
        | dag_forms.loss_param()
        | dag_forms.stage_param()
        | dag_forms.suite_params(pipeline),
        doc_md=dag_docs.BACKFILL,
        is_paused_upon_creation=False,
    ) as dag:
        backfill_tasks(pipeline, settings.cluster, settings.pools)
    dag.default_args[dag_forms.DEFINITION] = pack(pipeline)
    return dag


def rollback(pipeline: Pipeline, settings: Settings) -> DAG:
    """Return the DAG that takes back the last publication of slices. It runs only when it is triggered."""
    with dag_of(
        pipeline,
        settings,
        "rollback",
        None,
        f"Take back the last publication of slices of {pipeline.name}",
        params=dag_forms.range_params(),
        doc_md=dag_docs.ROLLBACK,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.rollback.override(outlets=list(dag_forms.assets_of(pipeline).values()))(str(pipeline.file))
    return dag


def check(pipeline: Pipeline, settings: Settings) -> DAG:
    """Return the DAG that finds published slices whose blobs have changed. One run at a time writes their record."""
    with dag_of(
        pipeline,
        settings,
        "check",
        "@daily",
        f"Find published slices of {pipeline.name} whose blobs have changed",
        max_active_runs=1,
        params=dag_forms.range_params("Empty: the last seven days."),
        doc_md=dag_docs.CHECK,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.check(str(pipeline.file))
    return dag


DAGS = {"update": update, "backfill": backfill, "approval": approval, "rollback": rollback, "check": check}
"""Functions that return a DAG, by what it does."""
