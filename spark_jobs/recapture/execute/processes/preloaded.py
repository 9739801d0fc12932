"""Load what tasks need. The fork server of `workers` and Spark's `daemon` import this module; no worker has to."""

from recapture.process.startup import hidden, loaded_for_forks

with loaded_for_forks():
    import numpy as np
    import pyarrow as pa

    with hidden(["pandas"]):  # pyarrow.dataset imports it if it is installed; no task needs it
        import pyarrow.acero
        import pyarrow.dataset  # Arrow imports both on demand

    import recapture.execute.processes.task_files
    import recapture.formats.event_hubs
    import recapture.storage.folder
    import recapture.storage.took  # noqa: F401
    from recapture.formats import avro
    from recapture.formats.bodies import Projection
    from recapture.formats.enqueued_times import read_times
    from recapture.formats.json_bodies.decoder import JsonBodies
    from recapture.model import AsaType, InputColumn
    from recapture.ordering import profile
    from recapture.ordering.arrived_numbers import NumberCollector
    from recapture.ordering.key_counts import KeyCounts
    from recapture.ordering.row_order import sorted_rows
    from recapture.ordering.sequence import SequenceNumbers
    from recapture.ordering.tallies import tally
    from recapture.process.compilation import frozen
    from recapture.run_files.json_file import JsonFile
    from recapture.run_files.metric_row import MetricRow
    from recapture.time_model.judging import LargestTimes, judge
    from recapture.time_model.policies import IS_PROCESSED, Policies
    from recapture.time_model.string_codes import StringCodes
    from recapture.time_model.verdicts import Verdict

    # Processing a few values loads the compiled code, and prepares the encoder of JSON.
    avro.load()
    read_times(pa.array([], pa.string()))
    JsonBodies().decode(pa.array([b'{"time":null}']), Projection([InputColumn(("time",), AsaType.DATETIME)]))
    StringCodes().encode(pa.array([], pa.string()))
    no_times = np.empty(0, np.int64)
    judged = judge(Policies(0, None, None, adjust=True), LargestTimes(), no_times, np.empty(0, bool), no_times, None)
    tally(judged.at(slice(None)), frozen(no_times), IS_PROCESSED, np.zeros(len(Verdict), np.int64))
    KeyCounts(("key",)).observe({"key": pa.array([], pa.string())}, judged, slice(None))
    profile.load()
    SequenceNumbers().observe(*[np.zeros(1, np.int64)] * 4)
    NumberCollector().add(None, *[np.zeros(1, np.int64)] * 2)
    sorted_rows(pa.table({"key": ["b", "a"]}))
    JsonFile("", tuple[MetricRow, ...]).encode(())
