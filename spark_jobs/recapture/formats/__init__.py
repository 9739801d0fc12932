"""The input formats, one module per format: its section of the pipeline file, its blob names, and its reader."""

import os

import pyarrow as pa

# DataFusion's allocator would otherwise keep as much memory as a blob's largest block needs. Arrow's own, which is the
# same and obeys the same variable, would then give the memory of each chunk back, only to ask for it again.
os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "0")
pa.set_memory_pool(pa.system_memory_pool())
