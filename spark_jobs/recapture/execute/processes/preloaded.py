"""What the tasks need. The fork server of `workers` imports this module, so that no worker has to."""

import duckdb  # noqa: F401, `formats` imports it on demand
import numpy as np

import recapture.execute.processes.task_files  # noqa: F401
from recapture.formats import avro
from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.policies import Policies

avro.load()
no_times = np.empty(0, np.int64)  # judging no events loads the compiled policies
judge(Policies(0, None, None, adjust=True), LargestTimes(), no_times, np.empty(0, bool), no_times, None)
