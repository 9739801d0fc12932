"""Call the compiled functions, so that Numba compiles them: compute an hour of sample events, and publish nothing.

Runs as a program with the packages of a bundle: python -m recapture.tools.bundle.warm_up FOLDER
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recapture.definition.pipeline import load
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.run.plan import begin_run, preview
from recapture.tools.sample import world, write_world

START = datetime(2026, 3, 1, tzinfo=UTC)
_BY_DEVICE = "FROM telemetry TIMESTAMP BY eventTime OVER deviceId"
_EVENTS = "FROM telemetry TIMESTAMP BY eventTime"
QUERIES = (
    f"""SELECT System.Timestamp() AS t, deviceId, COUNT(*) AS n, SUM(temperature) AS s, AVG(temperature) AS a,
        MIN(temperature) AS l, MAX(temperature) AS h, STDEV(temperature) AS d
    INTO o0 {_BY_DEVICE} GROUP BY deviceId, TumblingWindow(minute, 5)""",
    f"""SELECT System.Timestamp() AS t, site.id AS site, COUNT(*) AS n, AVG(temperature) AS a
    INTO o0 {_EVENTS} GROUP BY site.id, HoppingWindow(minute, 10, 5)""",
    f"""SELECT deviceId, LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS p,
        ISFIRST(minute, 5) OVER (PARTITION BY deviceId) AS f,
        COUNT(*) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS c, CAST(temperature AS nvarchar(max)) AS x
    INTO o0 {_EVENTS}
    SELECT a.deviceId, a.temperature - b.temperature AS d
    INTO o1 FROM telemetry a TIMESTAMP BY eventTime LEFT JOIN telemetry b TIMESTAMP BY eventTime
        ON a.deviceId = b.deviceId AND DATEDIFF(second, a, b) BETWEEN 1 AND 60
    SELECT deviceId, COUNT(*) AS n, AVG(temperature) AS a, MAX(temperature) AS h, STDEV(temperature) AS d
    INTO o2 {_EVENTS} GROUP BY deviceId, SlidingWindow(minute, 1)
    SELECT deviceId, COUNT(DISTINCT temperature) AS n, TopOne() OVER (ORDER BY temperature DESC) AS t,
        PERCENTILE_CONT(0.9) OVER (ORDER BY temperature) AS p
    INTO o3 {_EVENTS} GROUP BY deviceId, SessionWindow(second, 40, 300)""",
)


def main(folder: Path) -> None:
    """Compute the queries in a folder, which is empty at first."""
    write_world(world(START, 1), folder / "archive")
    for number, query in enumerate(QUERIES):
        aliases = [f"o{place}" for place in range(query.count("INTO "))]
        document = {
            "name": "warm_up",
            "input": {
                "alias": "telemetry",
                "container": (folder / "archive").as_uri(),
                "namespace": "contoso",
                "event_hub": "telemetry",
            },
            "job": {"eventsLateArrivalMaxDelayInSeconds": 600, "query": query},
            "output": [{"alias": alias, "table": (folder / str(number) / alias).as_uri()} for alias in aliases],
        }
        file = folder / f"{number}.yaml"
        file.write_text(json.dumps(document))
        pipeline, scratch = load(file), folder / f"{number}-scratch"
        scratch.mkdir()
        with workers(1) as started:
            compute(started, begin_run(pipeline, preview(pipeline, START, START + timedelta(hours=1))), scratch)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
