"""The input formats, one module per format: its section of the pipeline file, its blob names, and its reader.

Importing this package chooses Arrow's allocator, and makes Arrow stop looking for pandas.
"""

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa

# Arrow's usual allocator, mimalloc, would return the memory of each chunk to the system, only to ask for it again.
pa.set_memory_pool(pa.system_memory_pool())


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError


# The first array that Arrow makes of Python values looks for pandas, which takes a second to import. Arrow looks again
# when a table becomes a frame.
_finder = _WithoutPandas()
sys.meta_path.insert(0, _finder)
try:
    pa.array([0])
finally:
    sys.meta_path.remove(_finder)
