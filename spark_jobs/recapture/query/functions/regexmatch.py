"""REGEXMATCH."""

from recapture.model import AsaType
from recapture.query.analyse.ecmascript import match_regex
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call, takes
from recapture.query.plan.expressions import Expr
from recapture.query.plan.operations import Op
from recapture.query.plan.regular import PatternError


def regexmatch(call: Call) -> Value:
    """REGEXMATCH(text, pattern), a bigint: where the first match begins, from 1; 0 for none.

    Letter case does not matter, and `.` matches the end of a line, too.
    """
    takes(call, 2)
    text, pattern = call.argument(0, AsaType.STRING).node, call.argument(1, AsaType.STRING)
    if pattern.text is None:
        return Value(Expr(Op.FIRST_MATCH_COMPUTED, [text, pattern.node], [call.name]), AsaType.BIGINT)
    try:
        return Value(Expr(Op.FIRST_MATCH, [text], [match_regex(pattern.text)]), AsaType.BIGINT)
    except PatternError as error:
        raise call.error(1, str(error)) from None
