"""The task that asks a person whether a run is published: it is staged, or its audit stopped it."""

from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param
from airflow.sdk.definitions.param import ParamsDict

from recapture.definition.pipeline import load
from recapture.errors import AuditError
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.run_notifications import notify
from recapture_airflow.task_results import AuditResult

APPROVE, REJECT = "Approve", "Reject"
WHY = "Why you approve or reject the run."
WHY_NEEDED = f"{WHY} Its audit stopped it: an approval without a reason does not count, and the task asks again."


class RunApproval(HITLOperator):
    """Operator that returns the result of the audit. If that stopped the run, or the run is staged, it asks a person.

    It waits for the answer without a slot. Fail at once if the person rejects the run, which discards a staged one,
    or if nobody answers in time.
    """

    template_fields = ("run", "audited")

    def __init__(self, *, file: str, run: Any, audited: Any, **kwargs: Any) -> None:
        self.file = file
        self.run = run
        self.audited = audited
        super().__init__(subject="Publish a run", options=[APPROVE, REJECT], **kwargs)
        self.params = ParamsDict({"reason": _reason(is_needed=False)})  # instead of those of the DAG

    @fail_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Return the audit's result if the run needs no decision, or was approved already. Otherwise ask a person."""
        from recapture.run.approval import approval_of
        from recapture.run_files import planned
        from recapture.run_files.contents import AUDIT

        if not self._is_stopped and not self._result.staged:
            return self._result.to_json()
        run = planned.load_run(load(Path(self.file)), self.run)
        audited = run.files.read(AUDIT)
        if approval_of(run.files, audited) is not None:
            return self._approved
        because = " although its audit stopped it" if audited.verdict == "failed" else ""
        self.subject = f"Publish {run.pipeline.name} {run.id}{because}?"
        self.body = _body(audited.text)
        self.params = ParamsDict({"reason": _reason(is_needed=audited.verdict == "failed")})
        super().execute(context)
        raise AssertionError("unreachable: the task waits for an answer")

    @fail_at_once()
    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Record the approval and return the audit's result. Fail at once if the run was rejected."""
        from recapture.keep.waiting import Waiting
        from recapture.run.approval import approve
        from recapture.run_files import planned
        from recapture.table.publications import Approval

        answer = super().execute_complete(context, event)
        pipeline = load(Path(self.file))
        by, reason = answer["responded_by_user"]["name"], (answer["params_input"]["reason"] or "").strip()
        if answer["chosen_options"] == [REJECT]:
            if not self._is_stopped:
                Waiting(pipeline).discard(self.run)
            why = f": {reason}" if reason else " without a reason"
            raise AuditError(f"run {self.run} {self._state}, and {by} rejected it{why}")
        if not self._is_stopped:
            return self._result.to_json()
        if not reason:
            self.log.warning("%s approved the run without a reason: asking again", by)
            return self.execute(context)
        at = datetime.fromisoformat(str(answer["responded_at"]))  # Airflow gives a string, or a time of its own class
        run = planned.load_run(pipeline, self.run)
        approve(run, Approval(by, at, reason))
        notify(pipeline, "approved", run.id, f"{by} approved run {run.id}: {reason}")
        return self._approved

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Raise AuditError if nobody answered in time."""
        if event["error_type"] == "timeout":
            advice = "" if self._is_stopped else ": recapture publish can still publish it until it expires"
            raise AuditError(f"run {self.run} {self._state}, and nobody approved it in time{advice}")
        super().process_trigger_event_error(event)

    @property
    def _result(self) -> AuditResult:
        return AuditResult.read(self.audited)

    @property
    def _is_stopped(self) -> bool:
        return self._result.verdict == "failed"

    @property
    def _approved(self) -> dict[str, Any]:
        """Return the result of the audit of a run that a person approved although it was stopped."""
        from recapture.run.approval import APPROVED

        return self._result.model_copy(update={"verdict": APPROVED}).to_json()

    @property
    def _state(self) -> str:
        return "was stopped by its audit" if self._is_stopped else "is staged"


def _reason(*, is_needed: bool) -> Param:
    """Return the field for the reason. Airflow's form enables its buttons only after all needed fields are filled."""
    if is_needed:
        return Param("", type="string", title="Reason", description=WHY_NEEDED)
    return Param(None, type=["null", "string"], title="Reason", description=WHY)


def _body(audit_text: str) -> str:
    """Return what failed or warned as a list in Markdown. The texts may come from devices, so they are code."""
    lines = [" ".join(line.split()) for line in audit_text.splitlines() if line.startswith(("FAILED", "WARNING"))]
    listed = "\n".join(f"* `{line.replace('`', chr(39))}`" for line in lines)
    return f"{listed}\n\nThe tab Recapture of the DAG run leads to the report."
