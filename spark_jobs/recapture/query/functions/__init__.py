"""The scalar functions of ASAQL, by name."""

from collections.abc import Callable, Mapping

from recapture.model import ShapeComparison
from recapture.query.functions import choices, dates, geography, numbers, records, texts, types
from recapture.query.functions.call import Call
from recapture.query.functions.regexmatch import regexmatch
from recapture.query.functions.unsupported import UNSUPPORTED
from recapture.query.generate.values import Value

__all__ = ["FUNCTIONS", "UNSUPPORTED"]

FUNCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "ABS": numbers.absolute,
    "CEILING": numbers.ceiling,
    "CHARINDEX": texts.charindex,
    "COALESCE": choices.coalesce,
    "CONCAT": texts.concat,
    "CONCAT_WS": texts.concat_ws,
    "CREATELINESTRING": geography.line_string,
    "CREATEPOINT": geography.point,
    "CREATEPOLYGON": geography.polygon,
    "DATEADD": dates.dateadd,
    "DATEDIFF": dates.datediff,
    "DATENAME": dates.datename,
    "DATEPART": dates.datepart,
    "DATETIMEFROMPARTS": dates.from_parts,
    "DAY": dates.day,
    "EXP": numbers.exponential,
    "FLOOR": numbers.floor,
    "GETARRAYELEMENT": records.array_element,
    "GETARRAYLENGTH": records.array_length,
    "GETRECORDPROPERTYVALUE": records.record_property,
    "GETTYPE": types.type_name,
    "IIF": choices.iif,
    "JSON_PARSE": records.parsed,
    "LEFT": texts.left,
    "LEN": texts.length,
    "LOWER": texts.lower,
    "LTRIM": texts.trim_left,
    "MONTH": dates.month,
    "NCHAR": texts.nchar,
    "NULLIF": choices.nullif,
    "PATINDEX": texts.patindex,
    "POWER": numbers.power,
    "REGEXMATCH": regexmatch,
    "REPLACE": texts.replace,
    "REPLICATE": texts.replicate,
    "REVERSE": texts.reverse,
    "RIGHT": texts.right,
    "ROUND": numbers.rounded,
    "RTRIM": texts.trim_right,
    "SIGN": numbers.sign,
    "SPACE": texts.space,
    "SQRT": numbers.square_root,
    "SQUARE": numbers.square,
    "STUFF": texts.stuff,
    "SUBSTRING": texts.substring,
    "TRANSLATE": texts.translate,
    "TRIM": texts.trim,
    "UNICODE": texts.unicode,
    "UPPER": texts.upper,
    "YEAR": dates.year,
    **{function: geography.comparing(function) for function in ShapeComparison},
}
"""Functions by name in capitals."""
