"""The compiler of the code that merges spreads is loaded only for queries that need it."""

import subprocess
import sys


def loads_numba(code: str) -> bool:
    """Return whether a process that runs some code loads Numba."""
    code = f"import sys\n{code}\nprint('numba' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    return {"True": True, "False": False}[output.strip()]


def test_numba_is_loaded_to_merge_spreads_and_not_before() -> None:
    imports = "import numpy as np\nimport pyarrow as pa\nfrom recapture.ordering import groups, panes, spreads"
    assert not loads_numba(imports)
    values = "pa.chunked_array([spreads.of_values(pa.array([1.0]))])"
    merge = f"spreads.merged(spreads.continue_spreads, {values}, np.array([0]), 1)"
    assert loads_numba(f"{imports}\n{merge}")
