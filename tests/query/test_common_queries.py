"""Queries that users of ASA write every day compile unchanged."""

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query

QUERIES = {
    "an alert by HAVING, with the names that SELECT gives": """
        SELECT Make, System.TimeStamp() AS [Time], COUNT(*) AS [Count] INTO alerts
        FROM tolls TIMESTAMP BY EntryTime GROUP BY Make, TumblingWindow(second, 10) HAVING [Count] >= 3
    """,
    "an archive of everything and an alert": """
        CREATE TABLE tolls (Make nvarchar(max), EntryTime datetime, Weight float)
        SELECT * INTO archive FROM tolls TIMESTAMP BY EntryTime
        SELECT Make, SUM(CAST(Weight AS BIGINT)) AS Weight INTO alerts FROM tolls TIMESTAMP BY EntryTime
        GROUP BY Make, TumblingWindow(second, 10)
    """,
    "a step that several outputs read": """
        WITH RedCars AS (SELECT * FROM tolls TIMESTAMP BY EntryTime WHERE Color = 'Red' AND Plate LIKE 'A%9')
        SELECT Plate, Make INTO archive FROM RedCars;
        SELECT COUNT(*) AS cars INTO alerts FROM RedCars GROUP BY TumblingWindow(hour, 1);
    """,
    "words put together from a count": """
        SELECT CASE WHEN COUNT(*) = 1 THEN CONCAT('1 ', Make)
                    ELSE CONCAT(CAST(COUNT(*) AS NVARCHAR(MAX)), ' ', Make, 's') END AS Cars,
               DATEADD(second, -10, System.Timestamp()) AS Since INTO alerts
        FROM tolls TIMESTAMP BY EntryTime GROUP BY Make, TumblingWindow(second, 10)
    """,
    "the last event of a hopping window, and what a later step takes of it": """
        WITH Newest AS (
            SELECT TopOne() OVER (ORDER BY EntryTime DESC) AS car, COUNT(DISTINCT Make) AS makes
            FROM tolls TIMESTAMP BY EntryTime GROUP BY HOPPINGWINDOW(second, 300, 5), BoothId
        )
        SELECT car.Plate AS Plate, makes, car.Weight * 2 AS twice INTO alerts FROM Newest
    """,
    "duplicates taken out by a snapshot": """
        WITH Once AS (
            SELECT COUNT(DISTINCT EntryTime) AS n, Weight, BoothId
            FROM tolls TIMESTAMP BY EntryTime GROUP BY Weight, BoothId, SYSTEM.TIMESTAMP()
        )
        SELECT AVG(Weight) AS mean, BoothId INTO alerts FROM Once GROUP BY BoothId, TumblingWindow(minute, 5)
    """,
    "epoch milliseconds, timelines of their own, metadata": """
        SELECT t.device.id AS device, MAX(t.reading) AS peak, t.PartitionId,
               GetMetadataPropertyValue(t, '[User].[site]') AS site INTO alerts
        FROM tolls AS t TIMESTAMP BY DATEADD(millisecond, t.epoch, '1970-01-01T00:00:00Z')
             OVER t.device.id, t.PartitionId PARTITION BY t.PartitionId
        GROUP BY t.device.id, t.PartitionId, GetMetadataPropertyValue(t, '[User].[site]'), Hopping(hour, 24, 1)
    """,
    "sensors in an array, a window of each": """
        WITH Readings AS (
            SELECT e.DeviceId, s.ArrayValue.Name AS sensor, TRY_CAST(s.ArrayValue.Value AS float) AS v
            FROM tolls AS e TIMESTAMP BY e.Time CROSS APPLY GetArrayElements(e.Sensors) AS s
        )
        SELECT DeviceId, sensor, AVG(v) AS mean, STDEV(v) AS spread, System.Timestamp AS windowEnd INTO alerts
        FROM Readings WHERE v IS NOT NULL GROUP BY DeviceId, sensor, TumblingWindow(Duration(minute, 1))
    """,
    "several windows at once": """
        SELECT System.Window().Id AS size, BoothId, COUNT(*) AS cars INTO alerts FROM tolls TIMESTAMP BY EntryTime
        GROUP BY BoothId, Windows(Window('short', Tumbling(minute, 10)), Window('long', HoppingWindow(hour, 1, 1)))
    """,
    "booths that fell silent, by a look-up and a step that selects everything": """
        WITH Booths AS (SELECT BoothId, COUNT(*) AS cars, 30 AS LimitMins FROM tolls TIMESTAMP BY EntryTime
                        GROUP BY BoothId, TumblingWindow(minute, 1)),
             Open AS (SELECT BoothId AS id FROM tolls TIMESTAMP BY EntryTime),
             Both AS (SELECT Booths.* FROM Booths LEFT JOIN Open
                      ON Booths.BoothId = Open.id AND DATEDIFF(ms, Booths, Open) = 0),
             Recent AS (SELECT * FROM Both WHERE LimitMins > 0),
             Last AS (SELECT *, COALESCE(LAG(cars) OVER (PARTITION BY BoothId LIMIT DURATION(hour, 1)), 0) AS before,
                             2 * limitmins AS twice FROM Recent),
             Changed AS ((SELECT *, 'TRUE' AS isOpen FROM Last WHERE cars > before AND twice > LimitMins)
                         UNION (SELECT *, 'FALSE' AS isOpen FROM Last WHERE cars <= before))
        SELECT BoothId, isOpen INTO alerts FROM Changed
    """,
    "sessions of a user and how long they were": """
        SELECT user_id, MIN([time]) AS [start], System.Timestamp() AS [end],
               DATEDIFF(s, MIN([time]), System.Timestamp()) AS seconds INTO alerts
        FROM tolls TIMESTAMP BY [time] GROUP BY user_id, SessionWindow(minute, 2, 60) OVER (PARTITION BY user_id)
    """,
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_an_everyday_query_compiles(text: str) -> None:
    outputs = [name for name in ("alerts", "archive") if f"INTO {name}" in text]
    compiled = compile_query(text, inputs={"tolls": CaptureInput.metadata}, output_aliases=outputs)
    assert {output.alias for output in compiled.outputs} == set(outputs)
