"""The input formats, one module per format: its section of the pipeline file, its blob names, and its reader.

Importing this package chooses Arrow's allocator, and makes Arrow stop looking for pandas.
"""

import pyarrow as pa

from recapture.process.startup import hidden

# Arrow's usual allocator, mimalloc, would return the memory of each chunk to the system, only to ask for it again.
pa.set_memory_pool(pa.system_memory_pool())

# The first array that Arrow makes of Python values looks for pandas. Arrow looks again when a table becomes a frame.
with hidden(["pandas"]):
    pa.array([0])
