"""Evaluate the expressions of ARM templates that make names: "[parameters('x')]", "[concat(…)]" and the like."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recapture.errors import DefinitionError

_TOKEN = re.compile(r"\s*+('(?:[^']|'')*+'|-?\d+|[A-Za-z_]\w*|[()\[\],.])")
_SECURE = ("securestring", "secureobject")
_OF_STRINGS: Mapping[str, Callable[[str], str]] = {"tolower": str.lower, "toupper": str.upper, "trim": str.strip}
_DEEPEST = 50
MAX_SIZE = 8 * 1024 * 1024
"""Largest size of the values that the expressions of a template make together, in characters and items.

Azure takes templates of up to 4 MB, with their values.
"""


@dataclass(frozen=True)
class Unknown:
    """Value that is known only at deployment: a parameter without a default, or a value that Azure creates."""

    name: str

    def __str__(self) -> str:
        return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', self.name)}}}"


@dataclass
class Expansion:
    """Size of the values that the expressions of a file have made, in characters and items."""

    file: str
    size: int = 0

    def add(self, size: int) -> None:
        """Add the size of a value. Raise DefinitionError if all values are larger than MAX_SIZE."""
        self.size += size
        if self.size > MAX_SIZE:
            raise DefinitionError(
                f"{self.file}: the expressions make values of more than {MAX_SIZE:,} characters: simplify the "
                "variables and parameters that contain each other"
            )


@dataclass
class TemplateScope:
    """Parameters and variables of one template. Each is evaluated once.

    `arguments` are the values that an outer template passes to the parameters of a nested one. A secure parameter is
    never resolved, even if it has a default.
    """

    expansion: Expansion
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    _values: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Values of parameters and variables, by kind and by name in lower case."""
    _evaluated: list[tuple[str, str]] = field(default_factory=list)
    """Parameters and variables whose values are being evaluated: each refers to the next."""

    def __post_init__(self) -> None:
        self._parameters, self._variables, self._arguments = (
            _in_lower_case(values) for values in (self.parameters, self.variables, self.arguments)
        )

    @property
    def file(self) -> str:
        """Name of the template's file."""
        return self.expansion.file

    def resolve(self, value: Any) -> Any:
        """Return the value with its expressions evaluated; an unknown value is ${NAME}.

        Raise DefinitionError if a parameter or variable refers to itself, or if the values are too large.
        """
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        result = self._evaluate(value)
        if result is not value:
            self.expansion.add(_size(result))
        return str(result) if isinstance(result, Unknown) else result

    def _evaluate(self, value: Any) -> Any:
        """Return the value of an expression; any other value as it is."""
        if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
            return value
        if value.startswith("[["):
            return value[1:]
        return _Evaluation(value[1:-1], self).result()

    def parameter(self, name: str) -> Any:
        """Return the value that was passed to a parameter, else its default; Unknown if it has neither or is secure."""
        key, definition = self._parameters.get(name.lower(), (name, None))
        if isinstance(definition, dict) and str(definition.get("type", "")).lower() in _SECURE:
            return Unknown(name)
        passed = self._arguments.get(name.lower())
        if passed is not None and passed[1] is not None:
            return passed[1]
        default = definition.get("defaultValue") if isinstance(definition, dict) else None
        return Unknown(key) if default in (None, "") else self._value("parameter", name.lower(), default)

    def variable(self, name: str) -> Any:
        """Return the value of a variable; Unknown if the template does not define it."""
        _, value = self._variables.get(name.lower(), (name, None))
        return Unknown(name) if value is None else self._value("variable", name.lower(), value)

    def _value(self, kind: str, name: str, definition: Any) -> Any:
        """Return the value of a parameter or variable, and keep it."""
        key = (kind, name)
        if key in self._evaluated:
            raise DefinitionError(f"{self.file}: a parameter or variable refers to itself: correct the template")
        if len(self._evaluated) > _DEEPEST:
            reason = f"variables and parameters refer to each other in more than {_DEEPEST} levels"
            raise DefinitionError(f"{self.file}: {reason}: simplify the template")
        if key not in self._values:
            self._evaluated.append(key)
            try:
                is_text = isinstance(definition, str)
                self._values[key] = self._evaluate(definition) if is_text else self.resolve(definition)
            finally:
                self._evaluated.pop()
        return self._values[key]


class _Evaluation:
    """Evaluation of one expression by recursive descent: call ( '.' name | '[' index ']' )* | text | number."""

    def __init__(self, text: str, scope: TemplateScope) -> None:
        self.scope = scope
        self.tokens: list[str] = []
        self.position = end = 0
        while token := _TOKEN.match(text, end):
            self.tokens.append(token[1])
            end = token.end()
        self.readable = not text[end:].strip()

    def result(self) -> Any:
        """Return the value of the expression; Unknown if it cannot be evaluated."""
        if not self.readable:
            return Unknown("expression")
        try:
            value = self._value()
        except (IndexError, RecursionError, ValueError):
            return Unknown("expression")
        return value if self.position == len(self.tokens) else Unknown("expression")

    def _value(self) -> Any:
        token = self._next()
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token.lstrip("-").isdigit():
            return int(token)
        value = _call(self.scope, token, self._arguments())
        while self.position < len(self.tokens) and self.tokens[self.position] in (".", "["):
            if self._next() == ".":
                value = _member(self.scope, value, self._next())
            else:
                value = _member(self.scope, value, self._value())
                self._pass("]")
        return value

    def _arguments(self) -> list[Any]:
        self._pass("(")
        arguments: list[Any] = []
        while self.tokens[self.position] != ")":
            if arguments:
                self._pass(",")
            arguments.append(self._value())
        self.position += 1
        return arguments

    def _next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def _pass(self, sign: str) -> None:
        if self._next() != sign:
            raise IndexError


def _call(scope: TemplateScope, function: str, arguments: list[Any]) -> Any:
    """Return the result of a function; Unknown if the function or its arguments are not supported."""
    match function.lower(), arguments:
        case "parameters", [str(name)]:
            return scope.parameter(name)
        case "variables", [str(name)]:
            return scope.variable(name)
        case (("string" | "tolower" | "toupper" | "trim" | "int"), [Unknown() as unknown]):
            return unknown
    if not all(isinstance(argument, str | int | Unknown) for argument in arguments):
        return Unknown(function)
    text = [str(argument) for argument in arguments]
    match function.lower(), arguments:
        case "concat", _:
            return _joined(scope, text)
        case "format", [str(pattern), *_]:
            parts = re.split(r"\{(\d+)\}", pattern)
            return _joined(scope, [text[1:][int(part)] if index % 2 else part for index, part in enumerate(parts)])
        case "resourceid", [*_, str(), str() | Unknown()]:
            return _resource_id(text)
        case "string", [str() | int()]:
            return text[0]
        case ("tolower" | "toupper" | "trim") as name, [str()]:
            return _OF_STRINGS[name](_joined(scope, text))
        case "int", [str() | int()] if re.fullmatch(r"-?\d+", text[0]):
            return int(text[0])
    return Unknown(function)


def _resource_id(arguments: list[str]) -> str:
    """Return the id of a resource from its provider on: P/a/b, x, y => providers/P/a/x/b/y"""
    *_, provider = (index for index, argument in enumerate(arguments) if "/" in argument)
    name, *types = arguments[provider].split("/")
    steps = [step for pair in zip(types, arguments[provider + 1 :], strict=False) for step in pair]
    return "/".join(["providers", name, *steps])


def _joined(scope: TemplateScope, parts: list[str]) -> str:
    """Return the parts as one text. Raise DefinitionError if the values of the template become too large."""
    scope.expansion.add(sum(map(len, parts)))
    return "".join(parts)


def _size(value: Any) -> int:
    """Return the number of characters and items in a value."""
    size, values = 0, [value]
    while values:
        item = values.pop()
        size += len(item) if isinstance(item, str) else 1
        if isinstance(item, dict):
            values.extend(item.values())
        elif isinstance(item, list):
            values.extend(item)
    return size


def _member(scope: TemplateScope, value: Any, step: Any) -> Any:
    """Return a property of an object or an item of a list; Unknown if there is none."""
    if isinstance(value, dict):
        item = value.get(str(step))
        if item is None:
            scope.expansion.add(len(value))
            _, item = _in_lower_case(value).get(str(step).lower(), (step, None))
        return Unknown(str(step)) if item is None else item
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return value if isinstance(value, Unknown) else Unknown("expression")


def _in_lower_case(values: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the values with their keys, by key in lower case; of keys that differ in case only, the first."""
    return {key.lower(): (key, value) for key, value in reversed(list(values.items()))}
