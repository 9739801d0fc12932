"""Find the files of a table that none of its readers needs, by the rule of Delta's VACUUM.

A reader may still read an old version of the table. So a file is unused only if neither the newest version names it nor
a version of the table's retention, and if it was written before the retention.
"""

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from recapture.errors import SetupError
from recapture.storage import delta_storage_options, delta_table_uri, open_container
from recapture.storage.container import Blob
from recapture.storage.delta import refusal_of_delta
from recapture.table.change_feed import FOLDER
from recapture.table.delta import Table
from recapture.table.files import is_written_by_recapture
from recapture.table.schema import SLICE_COLUMN
from recapture.table.writable import RETENTION, retention_of

CHANGE_DATA = f"{FOLDER}/"
"""Prefix of the names of change files, which only readers of the change data feed need."""
_HOUR = timedelta(hours=1)


def unused_files(table: Table, environment: Mapping[str, str] = os.environ) -> list[Blob]:
    """Return the files of slices that Recapture wrote, and the files of change data, that no reader needs, by name.

    The clock is the storage's. A retention of less than seven days counts as seven days. Rollback and runs may still
    need the files of slices. Raise RunError if the storage refuses.
    """
    container, url = open_container(table.url), table.url
    try:
        delta = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url, environment))
        retention = max(retention_of(delta.metadata().configuration), RETENTION)
    except TableNotFoundError:
        delta, retention = None, RETENTION
    except (DeltaError, OSError) as error:
        raise refusal_of_delta(url, error, environment) from error
    oldest = container.clock() - retention
    try:
        blobs = [*container.list(f"{SLICE_COLUMN}="), *container.list(CHANGE_DATA)]
    except SetupError:
        if delta is not None:
            raise
        return []  # nothing was ever written to the table
    old = [blob for blob in blobs if blob.last_modified < oldest and _is_ours(blob.name)]
    if delta is None or not old:
        return old
    # delta-rs compares with this machine's clock, in whole hours
    hours = max(0, math.ceil((datetime.now(UTC) - oldest) / _HOUR))
    try:
        unnamed = set(delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True))
    except (DeltaError, OSError) as error:
        raise refusal_of_delta(url, error, environment) from error
    return [blob for blob in old if blob.name in unnamed]


def _is_ours(name: str) -> bool:
    return name.startswith(CHANGE_DATA) or is_written_by_recapture(name)
