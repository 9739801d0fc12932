"""The scalar functions of ASAQL, by name."""

from collections.abc import Callable, Mapping

from recapture.model import AsaType, ShapeComparison
from recapture.query.analyse.values import Value
from recapture.query.functions import choices, dates, geography, numbers, records, strings, types
from recapture.query.functions.call import Call, computing
from recapture.query.functions.regexmatch import regexmatch
from recapture.query.functions.unsupported import UNSUPPORTED
from recapture.query.plan.operations import Op

__all__ = ["FUNCTIONS", "UNSUPPORTED"]

BIGINT, STRING, DATETIME = AsaType.BIGINT, AsaType.STRING, AsaType.DATETIME

FUNCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "ABS": numbers.absolute,
    "CEILING": numbers.ceiling,
    "CHARINDEX": strings.charindex,
    "COALESCE": choices.coalesce,
    "CONCAT": strings.concat,
    "CONCAT_WS": strings.concat_ws,
    "CREATELINESTRING": geography.line_string,
    "CREATEPOINT": geography.point,
    "CREATEPOLYGON": geography.polygon,
    "DATEADD": dates.dateadd,
    "DATEDIFF": dates.datediff,
    "DATENAME": dates.datename,
    "DATEPART": dates.datepart,
    "DATETIMEFROMPARTS": dates.from_parts,
    "DAY": computing(Op.DATE_PART, DATETIME, to=BIGINT, constants=["day"]),
    "EXP": numbers.exponential,
    "FLOOR": numbers.floor,
    "GETARRAYELEMENT": records.array_element,
    "GETARRAYLENGTH": computing(Op.ARRAY_LENGTH, AsaType.ARRAY, to=BIGINT),
    "GETRECORDPROPERTYVALUE": records.record_property,
    "GETTYPE": types.type_name,
    "IIF": choices.iif,
    "JSON_PARSE": computing(Op.PARSED_RECORD, STRING, to=AsaType.RECORD),
    "LEFT": strings.taking(Op.LEFT),
    "LEN": computing(Op.LENGTH, STRING, to=BIGINT),
    "LOWER": computing(Op.LOWER, STRING, to=STRING),
    "LTRIM": computing(Op.TRIM_START, STRING, to=STRING, constants=[strings.WHITE_SPACE]),
    "MONTH": computing(Op.DATE_PART, DATETIME, to=BIGINT, constants=["month"]),
    "NCHAR": computing(Op.CHARACTER, BIGINT, to=STRING),
    "NULLIF": choices.nullif,
    "PATINDEX": strings.patindex,
    "POWER": numbers.power,
    "REGEXMATCH": regexmatch,
    "REPLACE": computing(Op.REPLACE, STRING, STRING, STRING, to=STRING),
    "REPLICATE": computing(Op.REPEAT, STRING, BIGINT, to=STRING),
    "REVERSE": computing(Op.REVERSE, STRING, to=STRING),
    "RIGHT": strings.taking(Op.RIGHT),
    "ROUND": numbers.rounded,
    "RTRIM": computing(Op.TRIM_END, STRING, to=STRING, constants=[strings.WHITE_SPACE]),
    "SIGN": numbers.sign,
    "SPACE": strings.space,
    "SQRT": numbers.square_root,
    "SQUARE": numbers.square,
    "STUFF": strings.stuff,
    "SUBSTRING": strings.substring,
    "TRANSLATE": strings.translate,
    "TRIM": computing(Op.TRIM, STRING, to=STRING, constants=[strings.WHITE_SPACE]),
    "UNICODE": computing(Op.CODE_POINT, STRING, to=BIGINT),
    "UPPER": computing(Op.UPPER, STRING, to=STRING),
    "YEAR": computing(Op.DATE_PART, DATETIME, to=BIGINT, constants=["year"]),
    **{function: geography.comparing(function) for function in ShapeComparison},
}
"""Functions by name in capitals."""
