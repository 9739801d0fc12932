"""An example of a queue: a message in Azure Service Bus requests slices of a pipeline.

The triggerer takes each message from the queue, and Airflow starts a run of this DAG. The run makes the request, which
the next update carries out. A message that comes twice makes one request. `docs/update.md` describes the messages.

The DAG exists only where RECAPTURE_REQUESTS names the queue, and is paused when it is new. It needs the packages
apache-airflow-providers-microsoft-azure and apache-airflow-providers-common-messaging, and the connection
`azure_service_bus_default`. Copy the file to take messages from another queue.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from recapture_airflow.backfill_tasks import prepare
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.pipeline_files import load_all

QUEUE = os.environ.get("RECAPTURE_REQUESTS")
"""Name of the queue."""
PIPELINES = Path(__file__).parents[1] / "pipelines"


@task
@fail_at_once()
def make_requests(*, triggering_asset_events: Any = None) -> list[dict[str, Any]]:
    """Make the requests of the messages, and return them. Raise DefinitionError, after all others, for bad messages."""
    from recapture.keep.messages import make_requests

    pipelines, _ = load_all(PIPELINES)
    events = [event for events in triggering_asset_events.values() for event in events]
    return make_requests([event.extra["payload"]["message"] for event in events], pipelines)


if QUEUE:
    from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger

    messages = MessageQueueTrigger(scheme="azure+servicebus", queues=[QUEUE], max_wait_time=5, poll_interval=5)
    with DAG(
        "recapture.requests",
        schedule=[Asset("recapture_requests", watchers=[AssetWatcher(name="messages", trigger=messages)])],
        catchup=False,
        max_active_runs=1,
        default_args={
            "owner": "recapture",
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "pre_execute": prepare,
        },
        tags=["recapture", "example"],
        doc_md=__doc__,
    ):
        make_requests()
