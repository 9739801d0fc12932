"""Remove what killed runs left unfinished."""

import hashlib

from recapture.definition.pipeline import Pipeline
from recapture.process.wording import counted
from recapture.run.slices import slices_of
from recapture.run.tables import tables_of
from recapture.run_files.files import FOLDER
from recapture.storage import open_container, scratch
from recapture.table.change_feed import FOLDER as CHANGE_FILES
from recapture.table.files import folder_of
from recapture.time_model import ticks


def remove_leftovers(pipeline: Pipeline, run_id: str) -> list[str]:
    """Remove what killed runs left unfinished; return a line for each place that had any.

    These are the temporary folders and the run files of runs of exactly these slices, and the files of any run in these
    slices of the tables. What a running process still writes stays.
    """
    lines = [
        f"{folder}, a folder of temporary files" for folder in scratch.remove_abandoned(scratch_name(pipeline, run_id))
    ]
    places = {pipeline.outputs[0].table: [f"{FOLDER}/{_range_of(run_id)}-"]}
    bounds = (ticks.to_datetime(ticks.from_compact_text(text)) for text in _range_of(run_id).split("-"))
    slices = [folder_of(slice_.start) for slice_ in slices_of(pipeline, *bounds)]
    tables = tables_of(pipeline)
    changes = [f"{CHANGE_FILES}/{folder}" for folder in slices]
    for table in (tables.publications, *tables.others.values()):
        places.setdefault(table.url, []).extend((*slices, *changes, "_delta_log/"))
    for url, prefixes in places.items():
        container = open_container(url)
        files = [name for prefix in prefixes for name in container.remove_abandoned(prefix)]
        if files:
            lines.append(f"{counted(len(files), 'unfinished file')} in {url}, such as {files[0]}")
    return lines


def scratch_name(pipeline: Pipeline, run_id: str) -> str:
    """Return the name of the temporary folders of all runs of the same slices of the same table."""
    table = pipeline.outputs[0].publications_table
    return f"{pipeline.name}-{hashlib.sha256(table.encode()).hexdigest()[:12]}-{_range_of(run_id)}"


def _range_of(run_id: str) -> str:
    return run_id.rpartition("-")[0]
