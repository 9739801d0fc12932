"""Lower scalar Spark SQL to typed nodes: the operations of this package that give the same values as Spark.

`x` + 5L, x is bigint => Node(add, (Node(column x), Node(constant 5)), int64)

Whatever is not in a table here or in `functions` is refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from recapture.evaluate import control, json_values, matching, numbers, powers, regular, strings
from recapture.evaluate.documents import OF_FROM_JSON, OF_PATHS, Leniency
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.refusal import NotEvaluatedError
from recapture.evaluate.syntax import Call, Constant, Lambda, Name, Syntax

BIGINT, INT, DOUBLE, BOOLEAN, STRING = pa.int64(), pa.int32(), pa.float64(), pa.bool_(), pa.string()
DATE, TIMESTAMP, NULL = pa.date32(), pa.timestamp("us", tz="UTC"), pa.null()
_TYPES = {
    "BIGINT": BIGINT,
    "INT": INT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "STRING": STRING,
    "NULL": NULL,
}
_WIDTHS = (INT, BIGINT, DOUBLE)
"""Types of numbers. Each is widened to the later ones without CAST."""
_SYSTEM = ("_slice_start", "_slice_end")
MOST_NODES = 20_000
"""Largest number of operations of one projection."""


_ELEMENTS = pa.list_(pa.struct([("ArrayIndex", BIGINT), ("ArrayValue", STRING)]))
_PROPERTIES = pa.list_(pa.struct([("PropertyName", STRING), ("PropertyValue", STRING)]))


def _elements_of(json: Syntax) -> Syntax:
    """Return GetArrayElements of JSON, as the compiler writes it."""
    index, value = Name(("@@index",)), Name(("@@value",))
    fields = (Constant("ArrayIndex", "STRING"), Call("cast bigint", (index,)), Constant("ArrayValue", "STRING"), value)
    array = Call("from_json", (json, Constant("ARRAY<STRING>", "STRING")))
    return Call("transform", (array, Lambda(("@@value", "@@index"), Call("named_struct", fields))))


def _properties_of(json: Syntax) -> Syntax:
    """Return GetRecordProperties of JSON, as the compiler writes it."""
    key, value = Name(("@@entry", "key")), Name(("@@entry", "value"))
    fields = (Constant("PropertyName", "STRING"), key, Constant("PropertyValue", "STRING"), value)
    map_ = Call("from_json", (json, Constant("MAP<STRING, STRING>", "STRING")))
    return Call("transform", (Call("map_entries", (map_,)), Lambda(("@@entry",), Call("named_struct", fields))))


class Lowering:
    """The nodes of one projection over a table with known columns."""

    def __init__(self, columns: Mapping[str, pa.DataType]) -> None:
        self._columns = columns
        self._nodes: dict[Any, Node] = {}

    def node(
        self,
        kernel: Kernel,
        arguments: Sequence[Node],
        type_: pa.DataType,
        parameters: tuple[Any, ...] = (),
        raises: bool = False,
    ) -> Node:
        """Return the node of an operation. An equal one is the same object."""
        key = (kernel, *map(id, arguments), type_, *((type(value), value) for value in parameters))
        node = self._nodes.get(key)
        if node is None:
            raises = raises or any(argument.raises for argument in arguments)
            node = self._nodes[key] = Node(kernel, tuple(arguments), type_, parameters, raises)
            if len(self._nodes) > MOST_NODES:
                raise NotEvaluatedError("an expression is too long")
        return node

    def lower_all(self, expressions: Sequence[Syntax]) -> list[Node]:
        """Return the nodes of several expressions."""
        try:
            return [self.lower(expression, {}) for expression in expressions]
        except RecursionError:
            raise NotEvaluatedError("an expression is nested too deeply") from None

    def lower(self, syntax: Syntax, names: Mapping[str, Node]) -> Node:
        """Return the node of an expression; `names` are the parameters of the lambdas around it."""
        match syntax:
            case Constant(value, type_):
                return self.constant(value, _TYPES[type_])
            case Name(parts):
                return self._name(parts, names)
            case Call() if (idiom := self._idiom(syntax, names)) is not None:
                return idiom
            case Call("transform" | "[]" | "filter" | "map_filter" | "aggregate" | "get"):
                return self._let_or_elements(syntax, names)
            case Call("decode", (Call("unhex", (Call("lpad", (Call("hex", (code,)), *padding)),)), Constant("UTF-32"))):
                if padding != [Constant(8, "INT"), Constant("0", "STRING")]:
                    raise NotEvaluatedError("DECODE")
                codes = self.fitting([self.lower(code, names)], [BIGINT])
                if codes is None:
                    raise NotEvaluatedError("DECODE")
                return self.node(strings.character, codes, STRING, (), raises=True)
            case Call("to_json", (Call("array", (value,)),)):
                listed = self.lower(value, names)
                if listed.type not in (DOUBLE, STRING):
                    raise NotEvaluatedError(f"TO_JSON of {listed.type}")
                return self.node(json_values.listed, [listed], STRING)
            case Call(function, arguments):
                return self._call(function, [self.lower(argument, names) for argument in arguments])
        raise NotEvaluatedError("a lambda is not an argument of transform")

    def constant(self, value: Any, type_: pa.DataType) -> Node:
        """Return the node of a literal."""
        key = (control.constant, type_, repr(value))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(control.constant, (), type_, (control.literal(value, type_),))
        return node

    def _idiom(self, call: Call, names: Mapping[str, Node]) -> Node | None:
        """Return the node of an expression that is evaluated as a whole; None for any other."""
        from recapture.evaluate.idioms import matched

        found = matched(call)
        if found is None:
            return None
        idiom, value = found
        arguments = self.fitting([self.lower(value, names)], [idiom.argument])
        if arguments is None:
            return None
        return self.node(idiom.kernel, arguments, idiom.type, idiom.parameters, idiom.raises)

    def _name(self, parts: tuple[str, ...], names: Mapping[str, Node]) -> Node:
        first, *fields = parts
        node = names.get(first)
        if node is None:
            if first in _SYSTEM:
                node = self.node(control.bound, (), BIGINT, (first,))
            else:
                type_ = self._columns.get(first)
                if type_ is None:
                    raise NotEvaluatedError(f"`{first}` is not a column")
                node = self.node(control.column, (), control.column_type(type_), (first,))
        for field in fields:
            node = self._field(node, field)
        return node

    def _field(self, struct: Node, name: str) -> Node:
        if not pa.types.is_struct(struct.type):
            raise NotEvaluatedError(f"a field `{name}` of a value that is not a struct")
        names = [struct.type.field(index).name for index in range(struct.type.num_fields)]
        if names.count(name) != 1:
            raise NotEvaluatedError(f"a struct without the field `{name}`")
        return self.node(control.field, (struct,), struct.type.field(name).type, (name,))

    def _let_or_elements(self, call: Call, names: Mapping[str, Node]) -> Node:
        """Lower a value that is bound to a name, or the elements of an APPLY.

        transform(array(v), y -> y + y)[0] => v + v, after v
        """
        match call:
            case Call("[]", (Call("transform", (Call("array", (value,)), Lambda((name,), body))), Constant(0, "INT"))):
                bound = self.lower(value, names)
                used = self.lower(body, {**names, name: bound})
                return self.node(control.after, (bound, used), used.type) if bound.raises else used
            case Call(
                "get", (Call("map_values", (Call("map_filter", (map_, Lambda((key, _), condition))),)), Constant(0))
            ):
                match condition:
                    case Call("=", (Call("lower", (Name((one,)),)), Call("lower", (other,)))) if one == key:
                        lower = self._call("lower", [self.lower(other, names)])
                        return self.of_document(json_values.SIMILAR, self.lower(map_, names), lower, STRING)
            case Call("get", (array, index)):
                return self.of_document(json_values.ELEMENT, self.lower(array, names), self.lower(index, names), STRING)
            case Call("transform", (Call("from_json", (json, Constant("ARRAY<STRING>"))), _)) if call == _elements_of(
                json
            ):
                return self.node(json_values.ELEMENTS, [self.lower(call.arguments[0], names)], _ELEMENTS)
            case Call("transform", (Call("map_entries", (Call("from_json", (json, _)),)), _)) if call == _properties_of(
                json
            ):
                map_ = Call("from_json", (json, Constant("MAP<STRING, STRING>", "STRING")))
                return self.node(json_values.PROPERTIES, [self.lower(map_, names)], _PROPERTIES)
        raise NotEvaluatedError(f"{call.function.upper()} of an array")

    def of_document(self, kernel: Kernel, parsed: Node, other: Node, type_: pa.DataType) -> Node:
        """Return a function of a document and another value."""
        by_row = json_values.BY_ROW[kernel]
        if parsed.kernel is not json_values.documents:
            raise NotEvaluatedError("an array or a map that is not read from JSON")
        if self.is_constant(other) and other.type in (STRING, INT):
            value = self.string_constant(other, "") if other.type == STRING else self.integer_constant(other)
            return self.node(kernel, [parsed], type_, (value,))
        return self.node(by_row, [parsed, other], type_)

    def _call(self, function: str, arguments: list[Node]) -> Node:
        if function.startswith("."):
            return self._field(arguments[0], function[1:])
        special = _SPECIAL.get(function)
        if special is not None:
            return special(self, arguments)
        from recapture.evaluate.functions import FUNCTIONS

        for signature in FUNCTIONS.get(function, ()):
            fitting = self.fitting(arguments, signature.arguments, signature.many)
            if fitting is not None:
                kernel, parameters = signature.kernel, signature.parameters
                if kernel is strings.same:
                    return fitting[0]
                return self.node(kernel, fitting, signature.type, parameters, signature.raises)
        types = ", ".join(str(argument.type) for argument in arguments)
        raise NotEvaluatedError(f"{function.upper()}({types})")

    def fitting(self, arguments: Sequence[Node], types: Sequence[pa.DataType], many: bool = False) -> list[Node] | None:
        """Return arguments in these types, the last of which stands for `many`; None if they do not fit."""
        if many:
            types = [*types, *[types[-1]] * (len(arguments) - len(types))]
        if len(types) != len(arguments):
            return None
        converted = [self._converted(argument, type_) for argument, type_ in zip(arguments, types, strict=True)]
        fitting = [argument for argument in converted if argument is not None]
        return fitting if len(fitting) == len(converted) else None

    def _converted(self, node: Node, type_: pa.DataType) -> Node | None:
        """Return a value in a type; None if Spark would need a CAST."""
        if node.type == type_:
            return node
        if node.type == NULL:
            return self.node(control.typed_null, (node,), type_)
        if node.type in _WIDTHS and type_ in _WIDTHS and _WIDTHS.index(node.type) < _WIDTHS.index(type_):
            return self.node(numbers.computed_float if type_ == DOUBLE else numbers.computed_same, (node,), type_)
        return None

    def unified(self, values: Sequence[Node]) -> list[Node]:
        """Return values in one type, as the branches of a CASE are."""
        types = [value.type for value in values if value.type != NULL]
        if not types:
            return list(values)
        type_ = max(types, key=_WIDTHS.index) if all(one in _WIDTHS for one in types) else types[0]
        if type_ == DOUBLE and BIGINT in types:
            raise NotEvaluatedError("a CASE of bigint and float")
        fitting = self.fitting(values, [type_] * len(values))
        if fitting is None:
            raise NotEvaluatedError(f"values of the types {', '.join(dict.fromkeys(map(str, types)))}")
        return fitting

    def is_constant(self, node: Node) -> bool:
        """Return whether a node is a literal."""
        return node.kernel is control.constant

    def string_constant(self, node: Node, what: str) -> str:
        """Return the string of a literal. Raise NotEvaluatedError for anything else."""
        if not self.is_constant(node) or node.type != STRING:
            raise NotEvaluatedError(f"{what} that is computed")
        return str(node.parameters[0].as_py())

    def integer_constant(self, node: Node) -> int:
        """Return the number of a literal. Raise NotEvaluatedError for anything else."""
        if not self.is_constant(node) or node.type not in (INT, BIGINT):
            raise NotEvaluatedError("a number that is computed")
        return int(node.parameters[0].values)


def _binary(lowering: Lowering, arguments: list[Node]) -> list[Node]:
    """Return two operands in the wider of their types."""
    return (
        lowering.unified(arguments)
        if DOUBLE not in {node.type for node in arguments}
        else _as_doubles(lowering, arguments)
    )


def _as_doubles(lowering: Lowering, arguments: list[Node]) -> list[Node]:
    fitting = lowering.fitting(arguments, [DOUBLE] * len(arguments))
    if fitting is None:
        raise NotEvaluatedError("a float with another type")
    return fitting


def _arithmetic(exact: Kernel, floating: Kernel | None) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = _binary(lowering, arguments)
        type_ = fitting[0].type
        if type_ in (BIGINT, INT):
            return lowering.node(exact, fitting, type_, (), raises=True)
        if type_ == DOUBLE and floating is not None:
            return lowering.node(floating, fitting, type_, (), raises=floating is numbers.quotient)
        raise NotEvaluatedError(f"arithmetic with {type_}")

    return lower


def _division(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(numbers.quotient, _as_doubles(lowering, arguments), DOUBLE, (), raises=True)


def _integer_division(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = lowering.fitting(arguments, [BIGINT, BIGINT])
    if fitting is None:
        raise NotEvaluatedError("DIV of floats")
    return lowering.node(numbers.quotient, fitting, BIGINT, (), raises=True)


def _comparison(sign: str) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = _binary(lowering, arguments)
        if fitting[0].type == NULL:
            fitting = [lowering.node(control.typed_null, (node,), BIGINT) for node in fitting]
        if fitting[0].type not in (BIGINT, INT, DOUBLE, STRING, BOOLEAN):
            raise NotEvaluatedError(f"a comparison of {fitting[0].type}")
        return lowering.node(numbers.compared, fitting, BOOLEAN, (sign,))

    return lower


def _connective(kernel: Kernel) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = lowering.fitting(arguments, [BOOLEAN] * len(arguments))
        if fitting is None:
            raise NotEvaluatedError("AND, OR and NOT of values that are not conditions")
        return lowering.node(kernel, fitting, BOOLEAN)

    return lower


def _null_test(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(numbers.is_null, arguments, BOOLEAN)


def _membership(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = _binary(lowering, arguments)
    if fitting[0].type not in (BIGINT, INT, DOUBLE, STRING, BOOLEAN):
        raise NotEvaluatedError(f"IN of {fitting[0].type}")
    equal = [lowering.node(numbers.compared, (fitting[0], member), BOOLEAN, ("=",)) for member in fitting[1:]]
    return lowering.node(control.any_of, equal, BOOLEAN)


def _case(lowering: Lowering, arguments: list[Node]) -> Node:
    conditions = lowering.fitting(arguments[:-1:2], [BOOLEAN] * (len(arguments) // 2))
    if conditions is None:
        raise NotEvaluatedError("a CASE whose WHEN is not a condition")
    values = lowering.unified([*arguments[1::2], arguments[-1]])
    # Spark leaves out branches that make no difference, with the errors of their conditions.
    while len(values) > 1 and values[-2] is values[-1]:
        values.pop()
        conditions.pop()
    if not conditions:
        return values[-1]
    parts = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return lowering.node(control.case, [*parts, values[-1]], values[-1].type)


def _coalesce(lowering: Lowering, arguments: list[Node]) -> Node:
    values = lowering.unified(arguments)
    return values[0] if len(values) == 1 else lowering.node(control.coalesce, values, values[0].type)


def _raise_error(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = lowering.fitting(arguments, [STRING])
    if fitting is None:
        raise NotEvaluatedError("RAISE_ERROR of a value that is not a string")
    return lowering.node(control.raise_error, fitting, NULL, (), raises=True)


def _trimming(ends: str) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        characters = lowering.string_constant(arguments[1], "TRIM of characters")
        return lowering.node(strings.trimmed, _strings(lowering, arguments[:1]), STRING, (ends, characters))

    return lower


def _strings(lowering: Lowering, arguments: list[Node]) -> list[Node]:
    fitting = lowering.fitting(arguments, [STRING] * len(arguments))
    if fitting is None:
        raise NotEvaluatedError("a string function of a value that is not a string")
    return fitting


def _like(lowering: Lowering, arguments: list[Node]) -> Node:
    text, pattern = _strings(lowering, arguments)
    if lowering.is_constant(pattern):
        return lowering.node(
            matching.like, [text], BOOLEAN, (matching.like_pattern(lowering.string_constant(pattern, "LIKE")),)
        )
    return lowering.node(matching.like_computed, [text, pattern], BOOLEAN, (), raises=True)


def _rlike(lowering: Lowering, arguments: list[Node]) -> Node:
    pattern = regular.compiled(lowering.string_constant(arguments[1], "RLIKE of a pattern"))
    return lowering.node(matching.rlike, _strings(lowering, arguments[:1]), BOOLEAN, (pattern,))


def _regexp_extract(lowering: Lowering, arguments: list[Node]) -> Node:
    text, pattern, group = arguments
    if lowering.integer_constant(group) != 1:
        raise NotEvaluatedError("REGEXP_EXTRACT of another group than the first")
    compiled = regular.compiled(lowering.string_constant(pattern, "REGEXP_EXTRACT of a pattern"))
    return lowering.node(matching.extracted, _strings(lowering, [text]), STRING, (compiled,))


def _regexp_replace(lowering: Lowering, arguments: list[Node]) -> Node:
    text, pattern, replacement = arguments
    compiled = regular.compiled(lowering.string_constant(pattern, "REGEXP_REPLACE of a pattern"))
    java = lowering.string_constant(replacement, "REGEXP_REPLACE by a string")
    python = regular.replacement_for_python(java, compiled.python.groups)
    return lowering.node(matching.replaced, _strings(lowering, [text]), STRING, (compiled, python))


def _lpad(lowering: Lowering, arguments: list[Node]) -> Node:
    text, width, padding = arguments
    character = lowering.string_constant(padding, "LPAD with a string")
    size = lowering.integer_constant(width)
    if len(character) != 1 or size <= 0:
        raise NotEvaluatedError("LPAD")
    return lowering.node(strings.padded, _strings(lowering, [text]), STRING, (size, character))


def _elt(lowering: Lowering, arguments: list[Node]) -> Node:
    number = lowering.fitting(arguments[:1], [INT])
    if number is None:
        raise NotEvaluatedError("ELT")
    literals = tuple(lowering.string_constant(argument, "ELT of a string") for argument in arguments[1:])
    return lowering.node(strings.element, number, STRING, literals, raises=True)


def _concat(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(strings.concat, _strings(lowering, arguments), STRING)


def _concat_ws(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(strings.concat_ws, _strings(lowering, arguments), STRING)


def _case_of_letters(name: str) -> Callable[[Lowering, list[Node]], Node]:
    """Return UPPER or LOWER. As in Spark, one inside counts for nothing: LOWER(UPPER(x)) => LOWER(x)"""

    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        (text,) = _strings(lowering, arguments)
        while text.kernel is strings.changed:
            (text,) = text.arguments
        if lowering.is_constant(text) and text.parameters[0].is_valid:
            change = strings.upper if name == "upper" else strings.lower
            return lowering.constant(change(text.parameters[0].as_py()), STRING)
        return lowering.node(strings.changed, [text], STRING, (name,))

    return lower


def _documents(lowering: Lowering, text: Node, leniency: Leniency, type_: pa.DataType) -> Node:
    return lowering.node(json_values.documents, _strings(lowering, [text]), type_, (leniency,))


def _from_json(lowering: Lowering, arguments: list[Node]) -> Node:
    text, schema = arguments
    type_ = _JSON_TYPES.get(lowering.string_constant(schema, "FROM_JSON with a schema"))
    if type_ is None:
        raise NotEvaluatedError("FROM_JSON with another schema")
    return _documents(lowering, text, OF_FROM_JSON, type_)


_JSON_TYPES = {"MAP<STRING, STRING>": pa.map_(STRING, STRING), "ARRAY<STRING>": pa.list_(STRING)}


def _of_path(kernel: Kernel, type_: pa.DataType) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        (text,) = arguments
        return lowering.node(kernel, [_documents(lowering, text, OF_PATHS, NULL)], type_)

    return lower


def _get_json_object(lowering: Lowering, arguments: list[Node]) -> Node:
    text, path = arguments
    name = _PATH.fullmatch(lowering.string_constant(path, "GET_JSON_OBJECT with a path"))
    if name is None:
        raise NotEvaluatedError("GET_JSON_OBJECT with another path")
    parsed = _documents(lowering, text, OF_PATHS, NULL)
    return lowering.node(json_values.PROPERTY, [parsed], STRING, (name[1] or name[2],))


_PATH = re.compile(r"\$(?:\['((?!\s)[^'?*\[\]\\]+)'\]|\.([A-Za-z]+))")


def _of_name(kernel: Kernel, type_: pa.DataType) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        (name,) = _strings(lowering, arguments[1:])
        return lowering.of_document(kernel, arguments[0], name, type_)

    return lower


def _power(lowering: Lowering, arguments: list[Node]) -> Node:
    base, exponent = _as_doubles(lowering, arguments)
    if lowering.is_constant(exponent) and exponent.parameters[0].values == 2.0:
        return lowering.node(numbers.SQUARE, [base], DOUBLE)
    return lowering.node(powers.POWER, [base, exponent], DOUBLE)


def _rounding(lowering: Lowering, arguments: list[Node]) -> Node:
    number, digits = arguments
    places = lowering.integer_constant(digits)
    if number.type == DOUBLE:
        return lowering.node(numbers.rounded_double, [number], DOUBLE, (places,))
    fitting = lowering.fitting([number], [BIGINT])
    if fitting is None:
        raise NotEvaluatedError("ROUND of another type than bigint and float")
    return lowering.node(numbers.rounded_bigint, fitting, BIGINT, (places,), raises=places < 0)


def _named_struct(lowering: Lowering, arguments: list[Node]) -> Node:
    names = [lowering.string_constant(name, "a field name") for name in arguments[::2]]
    values = arguments[1::2]
    type_ = pa.struct([pa.field(name, value.type) for name, value in zip(names, values, strict=True)])
    return lowering.node(control.named_struct, values, type_)


_SPECIAL: dict[str, Callable[[Lowering, list[Node]], Node]] = {
    "+": _arithmetic(numbers.ADD, numbers.ADD_FLOATS),
    "-": _arithmetic(numbers.SUBTRACT, numbers.SUBTRACT_FLOATS),
    "*": _arithmetic(numbers.MULTIPLY, numbers.MULTIPLY_FLOATS),
    "/": _division,
    "div": _integer_division,
    "%": _arithmetic(numbers.remainder, None),
    **{sign: _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "and": _connective(control.conjunction),
    "or": _connective(control.disjunction),
    "not": _connective(numbers.NOT),
    "is null": _null_test,
    "in": _membership,
    "case": _case,
    "coalesce": _coalesce,
    "raise_error": _raise_error,
    "named_struct": _named_struct,
    **{f"trim {ends}": _trimming(ends) for ends in ("leading", "trailing", "both")},
    "upper": _case_of_letters("upper"),
    "lower": _case_of_letters("lower"),
    "like": _like,
    "rlike": _rlike,
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "lpad": _lpad,
    "elt": _elt,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "pow": _power,
    "from_json": _from_json,
    "get_json_object": _get_json_object,
    "json_object_keys": _of_path(json_values.IS_OBJECT, BOOLEAN),
    "json_array_length": _of_path(json_values.ARRAY_LENGTH, INT),
    "map_contains_key": _of_name(json_values.HAS_NAME, BOOLEAN),
    "try_element_at": _of_name(json_values.NAMED, STRING),
    "round": _rounding,
}
"""Operations whose types depend on those of their operands. All others are in `functions`."""
