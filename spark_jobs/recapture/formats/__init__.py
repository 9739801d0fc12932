"""The input formats, one module per format: its section of the pipeline file, its blob names, and its reader."""

import os
import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa

# DataFusion's allocator would otherwise keep as much memory as a blob's largest block needs. Arrow's own, which is the
# same and obeys the same variable, would then give the memory of each chunk back, only to ask for it again.
os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "0")
pa.set_memory_pool(pa.system_memory_pool())


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError


# The first array that Arrow makes of Python values looks for pandas, which takes a second to import. Arrow looks again
# when a table becomes a frame.
_finder = _WithoutPandas()
sys.meta_path.insert(0, _finder)
pa.array([0])
sys.meta_path.remove(_finder)
