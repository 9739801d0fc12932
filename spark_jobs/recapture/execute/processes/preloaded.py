"""What the tasks need. The fork server of `workers` imports this module, so that no worker has to."""

from recapture.process.startup import loaded_for_forks

with loaded_for_forks():
    import duckdb  # noqa: F401, `formats` imports it on demand
    import numpy as np
    import pyarrow as pa
    import pyarrow.acero
    import pyarrow.dataset  # Arrow imports both on demand

    import recapture.execute.processes.task_files  # noqa: F401
    from recapture.formats import avro
    from recapture.formats.enqueued_times import read_times
    from recapture.time_model.judging import LargestTimes, judge
    from recapture.time_model.policies import Policies

    # Reading and judging nothing loads the compiled code.
    avro.load()
    read_times(pa.array([], pa.string()))
    no_times = np.empty(0, np.int64)
    judge(Policies(0, None, None, adjust=True), LargestTimes(), no_times, np.empty(0, bool), no_times, None)
