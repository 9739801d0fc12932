"""The compiler of the code that merges spreads is loaded only for queries that need it."""

import subprocess
import sys


def loaded(code: str) -> set[str]:
    """Return which of the slow packages a process loads that runs some code."""
    code = f"import sys\n{code}\nprint(*{{*sys.modules}} & {{'numba', 'scipy'}})"
    return {*subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()}


def test_numba_is_loaded_to_merge_spreads_and_scipy_never() -> None:
    imports = "import pyarrow as pa\nfrom recapture.ordering import groups, panes, spreads"
    assert loaded(imports) == set()
    merge = "spreads.continued(pa.chunked_array([spreads.of_values(pa.array([1.0]))]), pa.chunked_array([[[0]]]))"
    assert loaded(f"{imports}\n{merge}") == {"numba"}
