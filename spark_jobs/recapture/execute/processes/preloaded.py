"""What the tasks need. The fork server of `workers` imports this module, so that no worker has to."""

from recapture.process.startup import collect_garbage_less_often

collect_garbage_less_often()

import duckdb  # noqa: E402, F401, `formats` imports it on demand
import numpy as np  # noqa: E402

import recapture.execute.processes.panes_files  # noqa: E402, F401
from recapture.formats import avro  # noqa: E402
from recapture.time_model.judging import LargestTimes, judge  # noqa: E402
from recapture.time_model.policies import Policies  # noqa: E402

avro.load()
no_times = np.empty(0, np.int64)  # judging no events loads the compiled policies
judge(Policies(0, None, None, adjust=True), LargestTimes(), no_times, np.empty(0, bool), no_times, None)
