"""Scalar expressions and conditions of ASAQL as typed expressions, exact or refused.

As in T-SQL, an overflow of bigint arithmetic, a division by zero or an impossible CAST stops the run instead of giving
NULL silently. A query guards itself with NULLIF, CASE or TRY_CAST.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.comparisons import Comparisons
from recapture.query.analyse.json_text import json_record, property_of
from recapture.query.analyse.kinds import divided, is_open_number, known_kinds, with_kind_of, with_kind_of_choice
from recapture.query.analyse.patterns import like, like_computed
from recapture.query.analyse.refusals import ARITHMETIC, not_a_condition, unsupported
from recapture.query.analyse.tokens import has_own_types, is_dynamic, key_of, token_of
from recapture.query.analyse.user_functions import javascript_call, user_arguments
from recapture.query.analyse.values import Value
from recapture.query.functions import FUNCTIONS
from recapture.query.functions.call import Call
from recapture.query.parse.dialect import NEGATED_PREDICATE
from recapture.query.parse.names import call_name, is_analytic, is_system_timestamp, is_system_window, is_window_id
from recapture.query.parse.source import require_only
from recapture.query.parse.user_functions import USER_FUNCTION, is_user_aggregate
from recapture.query.plan.aggregates import AGGREGATES, COLLECTIONS, OF_HISTORY, PERCENTILES
from recapture.query.plan.expressions import FALSE, NULL, Expr, bigint, call, case_when, double, string
from recapture.query.plan.operations import Op

METADATA_CALL = "GETMETADATAPROPERTYVALUE"
_LARGEST_BIGINT = 2**63 - 1
_COMPARISONS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQUAL,
    exp.NEQ: Op.NOT_EQUAL,
    exp.GT: Op.GREATER,
    exp.GTE: Op.GREATER_OR_EQUAL,
    exp.LT: Op.LESS,
    exp.LTE: Op.LESS_OR_EQUAL,
}
_LOGIC: dict[type[exp.Expr], Op] = {exp.And: Op.AND, exp.Or: Op.OR}
_ARITHMETIC: dict[type[exp.Expr], Op] = {
    exp.Add: Op.ADD,
    exp.Sub: Op.SUBTRACT,
    exp.Mul: Op.MULTIPLY,
    exp.Div: Op.DIVIDE,
    exp.Mod: Op.MODULO,
}
_BITWISE: dict[type[exp.Expr], Op] = {
    exp.BitwiseAnd: Op.BIT_AND,
    exp.BitwiseOr: Op.BIT_OR,
    exp.BitwiseXor: Op.BIT_XOR,
    exp.BitwiseNot: Op.BIT_NOT,
}
_CAST_TYPES = {
    "BIGINT": AsaType.BIGINT,
    "FLOAT": AsaType.FLOAT,
    "DOUBLE": AsaType.FLOAT,
    "NVARCHAR": AsaType.STRING,
    "DATETIME": AsaType.DATETIME,
    "BIT": AsaType.BIT,
    "BOOLEAN": AsaType.BIT,
    "ARRAY": AsaType.ARRAY,
    "RECORD": AsaType.RECORD,
}


class NameScope(Protocol):
    """What names mean where an expression is: in a row, or in a group of a window."""

    def named_value(self, node: exp.Expr) -> Value | None:
        """Return the value of a node that, as a whole, is a column or a key of GROUP BY; None for any other node."""

    def system_timestamp(self, node: exp.Expr) -> Value:
        """Return the value of System.Timestamp()."""

    def window_id(self, node: exp.Expr) -> Value:
        """Return the value of System.Window().Id."""

    def aggregate(self, node: exp.Expr, call: exp.Anonymous, orderings: Sequence[exp.Ordered]) -> Value:
        """Return the result of an aggregate; `node` is the call with its OVER."""

    def analytic(self, node: exp.Expr) -> Value:
        """Return the result of an analytic function, such as LAG; `node` is the call with its OVER."""

    def metadata(self, node: exp.Anonymous) -> Value:
        """Return the value of GetMetadataPropertyValue(…)."""

    def whole_row(self, node: exp.Expr) -> Expr | None:
        """Return the record of a whole row, if a node is its name; None for any other node."""
        return None

    def property_of_row(self, node: exp.Expr, name: Value) -> Value | None:
        """Return a property of a whole row, if a node is the row's name; None for any other node."""
        return None


@dataclass(frozen=True)
class Expressions(Comparisons):
    """The compiler of expressions in one scope."""

    scope: NameScope

    def value(self, node: exp.Expr) -> Value:
        """Return a scalar with its type. Raise DefinitionError for whatever is not supported.

        x / 2.0 => Value(divide(x, 2.0), FLOAT)
        """
        if is_system_timestamp(node):
            return self.scope.system_timestamp(node)
        if is_window_id(node):
            return self.scope.window_id(node)
        if is_system_window(node):
            return Value(json_record([("Id", self.scope.window_id(node))]), AsaType.RECORD)
        named = self.scope.named_value(node)
        if named is not None:
            return named
        if isinstance(node, exp.Paren):
            return self.value(node.this)
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Null):
            return Value(NULL, None)
        if isinstance(node, exp.Neg):
            return self._negation(node)
        if isinstance(node, ARITHMETIC):
            return self._arithmetic(node)
        if type(node) in _BITWISE:
            return self._bitwise(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if is_analytic(node):
            return self.scope.analytic(node)
        if isinstance(node, exp.Window) and call_name(node.this) in AGGREGATES:
            return self._ordered_aggregate(node)
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if is_user_aggregate(node):
            return self.scope.aggregate(node, node.expression, [])
        if USER_FUNCTION in node.meta:
            return javascript_call(node.meta[USER_FUNCTION], self.user_arguments(node))
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return property_of(self.source, self.types, self.value(node.this), [node.expression])
        raise unsupported(self.source, node)

    def user_arguments(self, node: exp.Expr) -> list[Expr]:
        """Return the arguments of a call of a user-defined function as JavaScript takes them."""
        function, arguments = node.meta[USER_FUNCTION], node.expression.expressions
        call = Call(self, node.expression, function.called_as, len(arguments))
        return user_arguments(call, function, self.types, [self.scope.whole_row(argument) for argument in arguments])

    def condition(self, node: exp.Expr) -> Expr:
        """Return a condition, in which NULL stands for false. Raise DefinitionError for anything else.

        x BETWEEN 1 AND y => and(greater_or_equal(x, 1), less_or_equal(x, y))
        """
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        if type(node) in _LOGIC:
            return call(_LOGIC[type(node)], self.condition(node.this), self.condition(node.expression))
        if isinstance(node, exp.Not):
            return self._not(node)
        if type(node) in _COMPARISONS:
            return self.comparison(_COMPARISONS[type(node)], self.value(node.this), self.value(node.expression), node)
        if isinstance(node, exp.Between):
            require_only(self.source, node, "this", "low", "high")
            above = self.comparison(Op.GREATER_OR_EQUAL, self.value(node.this), self.value(node.args["low"]), node)
            below = self.comparison(Op.LESS_OR_EQUAL, self.value(node.this), self.value(node.args["high"]), node)
            return call(Op.AND, above, below)
        if isinstance(node, exp.In):
            require_only(self.source, node, "this", "expressions")
            return self._membership(node)
        if isinstance(node, exp.Is):
            return self._null_test(node)
        if isinstance(node, exp.Like):
            return self._like(node, None)
        if isinstance(node, exp.Escape) and isinstance(node.this, exp.Like):
            return self._like(node.this, node.expression)
        raise not_a_condition(self.source, node)

    def _operand(self, value: Value, node: exp.Expr) -> Value:
        return self.as_number(value, node, "arithmetic takes bigint and float")

    def _literal(self, node: exp.Literal) -> Value:
        text = str(node.this)
        if node.is_string:
            return Value(string(text), AsaType.STRING, text)
        if text.isdecimal() and text.isascii():
            if int(text) > _LARGEST_BIGINT:
                raise self.source.error(node, f"{text} does not fit a bigint: write {text}.0 for a float")
            return Value(bigint(int(text)), AsaType.BIGINT, text)
        try:
            number = float(text) if "_" not in text else math.inf
        except ValueError:
            number = math.inf
        if math.isinf(number):
            raise self.source.error(node, f"{text} is not a bigint or a float")
        return Value(double(number), AsaType.FLOAT, text)

    def _negation(self, node: exp.Neg) -> Value:
        if isinstance(node.this, exp.Literal) and node.this.name == str(_LARGEST_BIGINT + 1):
            return Value(bigint(-_LARGEST_BIGINT - 1), AsaType.BIGINT)
        value = self._operand(self.value(node.this), node.this)
        return with_kind_of(Value(call(Op.NEGATE, value.node), value.type), [value])

    def _arithmetic(self, node: exp.Expr) -> Value:
        nodes = (node.this, node.expression)
        sides = [self.value(side) for side in nodes]
        if any(side.type is None for side in sides):
            return self._with_null(sides, nodes, node)
        if isinstance(node, exp.Add) and any(map(self._is_string, sides)):
            return self._concatenation(sides, nodes)
        sides = [self._operand(self.types.refreshed(side), where) for side, where in zip(sides, nodes, strict=True)]
        (left, right), type_ = self.unify(sides, node)
        if isinstance(node, exp.Mod) and type_ is AsaType.FLOAT:
            raise self.source.error(node, "% takes two bigints: declare the fields with CREATE TABLE, or CAST")
        if isinstance(node, exp.Div) and type_ is AsaType.FLOAT and is_open_number(sides):
            return with_kind_of(self._quotient(sides, left, right, node), sides)
        truncates = isinstance(node, exp.Div) and type_ is AsaType.BIGINT
        op = Op.INTEGER_DIVIDE if truncates else _ARITHMETIC[type(node)]
        return with_kind_of(Value(call(op, left.node, right.node), type_), sides)

    def _with_null(self, sides: Sequence[Value], nodes: Sequence[exp.Expr], where: exp.Expr) -> Value:
        """Return the result of arithmetic with the literal NULL: NULL, of the other operand's type."""
        for side, node in zip(sides, nodes, strict=True):
            if isinstance(where, exp.Add) and side.type is AsaType.STRING:
                return Value(NULL, AsaType.STRING)
            if side.type is not None:
                return Value(NULL, self._operand(side, node).type)
        raise self.source.untyped_null(where)

    def _is_string(self, value: Value) -> bool:
        """Return whether a value is a string, whatever it is used for."""
        return value.type is AsaType.STRING and not value.is_json_element and not self.types.are_open(value.fields)

    def _concatenation(self, sides: Sequence[Value], nodes: Sequence[exp.Expr]) -> Value:
        """Compile string + string; NULL if one is NULL, unlike CONCAT."""
        message = "+ concatenates two strings: CAST the other operand to nvarchar(max), or use CONCAT"
        strings = (
            self.required(side, AsaType.STRING, node, message).node for side, node in zip(sides, nodes, strict=True)
        )
        return Value(call(Op.CONCAT, *strings), AsaType.STRING)

    def _quotient(self, sides: list[Value], left: Value, right: Value, where: exp.Expr) -> Value:
        """Compile a / b where the events decide whether both are bigints, for which ASA gives an integer."""
        kinds = known_kinds(sides)
        if kinds is not None:
            return Value(divided(left.node, right.node, kinds), AsaType.FLOAT)
        undeclared = [path for side in sides for path in side.undeclared]
        if not self.types.request_kinds(undeclared):
            reason = "if both values are bigints, ASA truncates this quotient to an integer"
            advice = f"CAST one to bigint or float, or {self.types.advice(undeclared[0])}"
            raise self.source.error(where, f"{reason}, but their types are not known here: {advice}")
        return Value(call(Op.DIVIDE, left.node, right.node), AsaType.FLOAT)

    def _bitwise(self, node: exp.Expr) -> Value:
        """Compile ~ & | ^. If all operands are bits, the result is a bit, otherwise a bigint; NULL if one is NULL.

        up & down => bit_and of both as bigints, as a bit
        """
        require_only(self.source, node, "this", "expression")
        if isinstance(node, exp.BitwiseNot):
            value = self._bits(node.this)
            op = Op.NOT if value.type is AsaType.BIT else Op.BIT_NOT
            return Value(call(op, value.node), value.type)
        sides = [self._bits(node.this), self._bits(node.expression)]
        left, right = (self.cast(side, AsaType.BIGINT, lenient=False, where=node) for side in sides)
        bits = Value(call(_BITWISE[type(node)], left.node, right.node), AsaType.BIGINT)
        if all(side.type is AsaType.BIT for side in sides):
            return self.cast(bits, AsaType.BIT, lenient=False, where=node)
        return bits

    def _bits(self, node: exp.Expr) -> Value:
        """Return a bit or a bigint. Raise DefinitionError for values of other types."""
        if isinstance(node, ARITHMETIC):
            raise self.source.error(node, "put parentheses around the arithmetic next to & | ^")
        value = self.value(node)
        if value.type is AsaType.BIT:
            return value
        return self.required(value, AsaType.BIGINT, node, f"~ & | ^ take bigint and bit, but this is {value.type}")

    def _case(self, node: exp.Case) -> Value:
        conditions, results = [], []
        for branch in node.args["ifs"]:
            require_only(self.source, branch, "this", "true")
            conditions.append(
                self.comparison(Op.EQUAL, self.value(node.this), self.value(branch.this), branch)
                if node.this
                else self.condition(branch.this)
            )
            results.append(self.value(branch.args["true"]))
        default = node.args.get("default")
        results_and_default = [*results, self.value(default) if default else Value(NULL, None)]
        (*values, other), type_ = self.unify(results_and_default, node, may_differ=True)
        branches = [(condition, value.node) for condition, value in zip(conditions, values, strict=True)]
        fields = values[0].fields if self.types.are_open(values[0].fields) else ()
        chosen = Value(case_when(branches, other.node), type_, fields=fields)
        return with_kind_of_choice(chosen, conditions, results_and_default, [*values, other])

    def _cast(self, node: exp.Cast) -> Value:
        require_only(self.source, node, "this", "to", "safe", "_type")
        to = node.args["to"]
        name = str(to.args.get("kind") or getattr(to.this, "name", to.this)).upper()
        type_ = _CAST_TYPES.get(name)
        if type_ is None:
            types = ", ".join(AsaType)
            raise self.source.error(node, f"`{name.lower()}` is not a type: the types are {types}")
        sizes = [size.name.upper() for size in to.expressions]
        if sizes not in ([], ["MAX"] if type_ is AsaType.STRING else []):
            raise self.source.error(node, f"this size is not supported: write {type_}")
        value = self.value(node.this)
        return self.cast(value, type_, isinstance(node, exp.TryCast), node)

    def _ordered_aggregate(self, node: exp.Window) -> Value:
        name = call_name(node.this)
        if name not in (*PERCENTILES, *COLLECTIONS) or node.args.get("partition_by"):
            reason = "needs LIMIT DURATION(hour, 1): add it, or" if name in OF_HISTORY else "is not supported:"
            raise self.source.error(node, f"{name}(…) OVER (…) {reason} use the window of GROUP BY")
        require_only(self.source, node, "this", "order", "over")
        order = node.args.get("order")
        return self.scope.aggregate(node, node.this, order.expressions if order else [])

    def _call(self, node: exp.Anonymous) -> Value:
        name = call_name(node)
        if name in AGGREGATES:
            return self.scope.aggregate(node, node, [])
        if name == METADATA_CALL:
            return self.scope.metadata(node)
        function = FUNCTIONS.get(name)
        if function is not None:
            return function(Call(self, node, name, len(node.expressions)))
        raise unsupported(self.source, node)

    def _membership(self, node: exp.In) -> Expr:
        if not node.expressions:
            raise self.source.error(node, "IN takes a list of values, such as IN (1, 2), not a table or a query")
        values = [self.value(part) for part in (node.this, *node.expressions)]
        return self.types.used_together(values, lambda current: self._is_in(current, node))

    def _is_in(self, values: list[Value], node: exp.In) -> Expr:
        is_converted = any(is_dynamic(value) and self.types.are_of_strings(value.fields) for value in values)
        is_mixed = self._have_tokens(values) and has_own_types(values) and not is_converted
        if self._have_own_types(values) or is_mixed:
            return call(Op.IN, *map(token_of, values))
        parts = self._of_own_types(values)
        if parts is not None:
            return call(Op.IN, *map(token_of, parts))
        return call(Op.IN, *(value.node for value in self._comparable(values, Op.EQUAL, node)))

    def _not(self, node: exp.Not) -> Expr:
        """Return the opposite of a condition (docs/time-model.md, section 6).

        A comparison with NULL is false, so NOT makes it true. A negated predicate is a comparison itself, as <> is.

        NOT x = y => not(coalesce(equal(x, y), false))    x NOT IN (y) => not(in(x, y))
        """
        condition = self.condition(node.this)
        if not node.meta.get(NEGATED_PREDICATE) and condition.op is not Op.IS_NULL:
            condition = call(Op.COALESCE, condition, FALSE)
        return call(Op.NOT, condition)

    def _null_test(self, node: exp.Is) -> Expr:
        require_only(self.source, node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise self.source.error(node, "IS is supported as IS NULL and IS NOT NULL")
        return call(Op.IS_NULL, key_of(self.value(node.this)))

    def _like(self, node: exp.Like, escape: exp.Expr | None) -> Expr:
        require_only(self.source, node, "this", "expression")
        text, pattern = self._text(node.this), self._text(node.expression)
        if pattern.text is None:
            if escape:
                raise self.source.error(node.expression, "LIKE … ESCAPE takes a pattern in quotes, such as 'a!%%'")
            return like_computed(text.node, pattern.node)
        character = self.value(escape) if escape else None
        if character is not None and (character.type is not AsaType.STRING or len(character.text or "") != 1):
            raise self.source.error(escape or node, "ESCAPE takes one character in quotes")
        try:
            return like(text.node, pattern.text, character.text if character else None)
        except DefinitionError as error:
            raise self.source.error(node.expression, str(error)) from None

    def _text(self, node: exp.Expr) -> Value:
        value = self.typed(self.value(node), AsaType.STRING, node)
        if value is None:
            raise self.source.error(node, "LIKE compares nvarchar(max): use CAST(… AS nvarchar(max))")
        return value
