"""The tasks of a backfill DAG: one for each stage of a run."""

import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from processes_run import ProcessesRun

import backfill_tasks as tasks
from capture_complete import CaptureCompleteSensor
from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import Engine
from recapture.run.stages import Approve, Audit, OrderAndAggregate, Plan, Publish, Report, Stage, WaitForCapture
from run_approval import RunApproval
from spark_run import SparkRun


@dataclass
class StageTasks:
    """Makes the tasks of the stages of a run, in their order. A task takes what the tasks before it return."""

    pipeline: Pipeline
    application: Path
    """Script that spark-submit runs."""
    range_: Any = field(init=False)
    run: Any = field(init=False)
    """Name of the run."""
    audited: Any = field(init=False)
    """Result of the audit, or of the approval."""

    def task_of(self, stage: Stage) -> Any:
        """Return the task of the next stage."""
        file = str(self.pipeline.file)
        match stage:
            case WaitForCapture(longest):
                timeout = longest + timedelta(days=1)
                task = CaptureCompleteSensor(task_id=stage.name, file=file, timeout=timeout)
                self.range_ = task.output
            case Plan():
                task = self.run = tasks.plan(file, self.range_)
            case OrderAndAggregate():
                task = self._order_and_aggregate(stage)
            case Audit():
                task = self.audited = tasks.audit(file, self.run)
            case Approve(wait):
                task = RunApproval(
                    task_id=stage.name, file=file, run=self.run, audited=self.audited, response_timeout=wait
                )
                self.audited = task.output
            case Publish():
                outlets = list(tasks.assets_of(self.pipeline).values())
                task = tasks.publish.override(outlets=outlets)(file, self.run, self.audited)
            case Report():
                task = tasks.report(file, self.run)
        return task

    def _order_and_aggregate(self, stage: OrderAndAggregate) -> SparkRun | ProcessesRun:
        file = str(self.pipeline.file)
        if stage.engine is Engine.PROCESSES:
            return ProcessesRun(task_id=stage.name, pool=tasks.PROCESSES, file=file, run=self.run)
        return SparkRun(
            task_id=stage.name,
            conn_id=tasks.SPARK,
            pool="spark",
            application=str(self.application),
            application_args=[file, self.run],
            name=f"{self.pipeline.name} {{{{ ti.xcom_pull('{Plan.name}') }}}}",
            conf={"spark.log.level": "WARN"},
            env_vars={"PYSPARK_PYTHON": sys.executable},
            pre_execute=tasks.prepare_for_spark,
        )
