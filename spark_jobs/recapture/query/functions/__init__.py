"""The scalar functions of ASAQL, by name."""

from collections.abc import Callable, Mapping

from recapture.model import AsaType, ShapeComparison
from recapture.query.analyse.ecmascript import match_regex
from recapture.query.analyse.patterns import position_regex
from recapture.query.analyse.values import Value
from recapture.query.functions import choices, dates, geography, numbers, records, strings, types
from recapture.query.functions.call import Call, computing
from recapture.query.functions.unsupported import UNSUPPORTED
from recapture.query.plan.operations import Op

__all__ = ["FUNCTIONS", "UNSUPPORTED"]

BIGINT, STRING, DATETIME = AsaType.BIGINT, AsaType.STRING, AsaType.DATETIME

FUNCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "ABS": numbers.absolute,
    "CEILING": numbers.integral(Op.CEILING),
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
    "DATETIMEFROMPARTS": computing(
        Op.DATETIME_FROM_PARTS, *[BIGINT] * 7, to=DATETIME, refused="the parts are not a time"
    ),
    "DAY": computing(Op.DATE_PART, DATETIME, to=BIGINT, constants=["day"]),
    "EXP": numbers.of_float(Op.EXPONENTIAL),
    "FLOOR": numbers.integral(Op.FLOOR),
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
    "PATINDEX": strings.matching(position_regex, pattern_index=0),
    "POWER": numbers.power,
    "REGEXMATCH": strings.matching(match_regex, pattern_index=1),
    "REPLACE": computing(Op.REPLACE, STRING, STRING, STRING, to=STRING),
    "REPLICATE": computing(Op.REPEAT, STRING, BIGINT, to=STRING),
    "REVERSE": computing(Op.REVERSE, STRING, to=STRING),
    "RIGHT": strings.taking(Op.RIGHT),
    "ROUND": numbers.rounded,
    "RTRIM": computing(Op.TRIM_END, STRING, to=STRING, constants=[strings.WHITE_SPACE]),
    "SIGN": numbers.sign,
    "SPACE": strings.space,
    "SQRT": numbers.of_float(Op.SQUARE_ROOT),
    "SQUARE": numbers.of_float(Op.SQUARE),
    "STUFF": strings.stuff,
    "SUBSTRING": strings.substring,
    "TRANSLATE": computing(
        Op.TRANSLATE, *[STRING] * 3, to=STRING, refused="the two lists of characters are not equally long"
    ),
    "TRIM": computing(Op.TRIM, STRING, to=STRING, constants=[strings.WHITE_SPACE]),
    "UNICODE": computing(Op.CODE_POINT, STRING, to=BIGINT),
    "UPPER": computing(Op.UPPER, STRING, to=STRING),
    "YEAR": computing(Op.DATE_PART, DATETIME, to=BIGINT, constants=["year"]),
    **{function: geography.comparing(function) for function in ShapeComparison},
}
"""Functions by name in capitals."""
