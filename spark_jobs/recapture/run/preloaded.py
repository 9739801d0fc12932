"""What the tasks need. The fork server of `run.workers` imports this module, so that no worker has to."""

import duckdb  # noqa: F401, `formats` imports it on demand

import recapture.run.panes_files  # noqa: F401
from recapture.formats.avro import compiled

compiled()
