"""The scalar functions of ASAQL, by name."""

from collections.abc import Callable, Mapping

from recapture.model import ShapeComparison
from recapture.query.functions import choices, dates, geography, numbers, records, strings, types
from recapture.query.functions.call import Call
from recapture.query.functions.regexmatch import regexmatch
from recapture.query.functions.unsupported import UNSUPPORTED
from recapture.query.generate.values import Value
from recapture.query.plan.operations import Op

__all__ = ["FUNCTIONS", "UNSUPPORTED"]

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
    "DAY": dates.giving("day"),
    "EXP": numbers.exponential,
    "FLOOR": numbers.floor,
    "GETARRAYELEMENT": records.array_element,
    "GETARRAYLENGTH": records.array_length,
    "GETRECORDPROPERTYVALUE": records.record_property,
    "GETTYPE": types.type_name,
    "IIF": choices.iif,
    "JSON_PARSE": records.parsed,
    "LEFT": strings.taking(Op.LEFT),
    "LEN": strings.length,
    "LOWER": strings.changing(Op.LOWER),
    "LTRIM": strings.trimming(Op.TRIM_START),
    "MONTH": dates.giving("month"),
    "NCHAR": strings.nchar,
    "NULLIF": choices.nullif,
    "PATINDEX": strings.patindex,
    "POWER": numbers.power,
    "REGEXMATCH": regexmatch,
    "REPLACE": strings.replace,
    "REPLICATE": strings.replicate,
    "REVERSE": strings.changing(Op.REVERSE),
    "RIGHT": strings.taking(Op.RIGHT),
    "ROUND": numbers.rounded,
    "RTRIM": strings.trimming(Op.TRIM_END),
    "SIGN": numbers.sign,
    "SPACE": strings.space,
    "SQRT": numbers.square_root,
    "SQUARE": numbers.square,
    "STUFF": strings.stuff,
    "SUBSTRING": strings.substring,
    "TRANSLATE": strings.translate,
    "TRIM": strings.trimming(Op.TRIM),
    "UNICODE": strings.unicode,
    "UPPER": strings.changing(Op.UPPER),
    "YEAR": dates.giving("year"),
    **{function: geography.comparing(function) for function in ShapeComparison},
}
"""Functions by name in capitals."""
