"""The functions that are refused: why, and what to write instead."""

_MODEL = (
    "needs ASA's own model, whose details are not published: publish its argument, and score the table, for example "
    "with ML.NET's DetectIidSpike or DetectIidChangePoint; the scores may differ from ASA's"
)
_NO_ASA = "is not a function of Azure Stream Analytics"

UNSUPPORTED = {
    "GETARRAYELEMENTS": "GetArrayElements returns rows: "
    "write FROM input CROSS APPLY GetArrayElements(input.list) AS item",
    "GETELEMENTS": "GetElements returns rows: write FROM input CROSS APPLY GetArrayElements(input.list) AS item",
    "GETRECORDPROPERTIES": "GetRecordProperties returns rows: "
    "write FROM input CROSS APPLY GetRecordProperties(input.record) AS item",
    "ANOMALYDETECTION_SPIKEANDDIP": f"AnomalyDetection_SpikeAndDip {_MODEL}",
    "ANOMALYDETECTION_CHANGEPOINT": f"AnomalyDetection_ChangePoint {_MODEL}",
    "ANOMALYDETECTION": f"AnomalyDetection {_MODEL}",
    "MATCH_RECOGNIZE": "MATCH_RECOGNIZE goes after an input or a step in FROM: FROM input MATCH_RECOGNIZE (…) AS m",
    "CONVERT": f"CONVERT {_NO_ASA}: write CAST(x AS type)",
    "TRY_CONVERT": f"TRY_CONVERT {_NO_ASA}: write TRY_CAST(x AS type)",
    "ISNULL": f"ISNULL {_NO_ASA}: write COALESCE(x, y), or x IS NULL",
    "GETDATE": f"GETDATE {_NO_ASA}: an event's time is System.Timestamp()",
    "GETUTCDATE": f"GETUTCDATE {_NO_ASA}: an event's time is System.Timestamp()",
    "FORMAT": f"FORMAT {_NO_ASA}: combine the parts with CONCAT and DATEPART or DATENAME",
    "MEDIAN": f"MEDIAN {_NO_ASA}: write PERCENTILE_CONT(0.5) OVER (ORDER BY x)",
    "REGEXREPLACE": f"REGEXREPLACE {_NO_ASA}: use REPLACE, TRANSLATE or STUFF",
}
"""Messages by name in capitals."""
