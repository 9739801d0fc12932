"""Evaluate the expressions of ARM templates that make names: "[parameters('x')]", "[concat(…)]" and the like."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recapture.errors import DefinitionError

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|-?\d+|[A-Za-z_]\w*|[()\[\],.])")
_SECURE = ("securestring", "secureobject")
_DEEPEST = 50


@dataclass(frozen=True)
class Unknown:
    """Value that is known only at deployment: a parameter without a default, or a value that Azure creates."""

    name: str

    def __str__(self) -> str:
        return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', self.name)}}}"


@dataclass(frozen=True)
class TemplateScope:
    """Parameters and variables of one template.

    `arguments` are the values that an outer template passes to the parameters of a nested one. A secure parameter is
    never resolved, even if it has a default.
    """

    file: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0

    def resolve(self, value: Any) -> Any:
        """Return the value with its expressions evaluated; an unknown value is ${NAME}.

        Raise DefinitionError if a parameter or variable refers to itself.
        """
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        result = self._evaluate(value)
        return str(result) if isinstance(result, Unknown) else result

    def _evaluate(self, value: Any) -> Any:
        """Return the value of an expression; any other value as it is."""
        if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
            return value
        if value.startswith("[["):
            return value[1:]
        if self.depth > _DEEPEST:
            raise DefinitionError(f"{self.file}: a parameter or variable refers to itself: correct the template")
        return _Evaluation(value[1:-1], self).result()

    def parameter(self, name: str) -> Any:
        """Return the value that was passed to a parameter, else its default; Unknown if it has neither or is secure."""
        key, definition = _entry(self.parameters, name)
        secure = isinstance(definition, dict) and str(definition.get("type", "")).lower() in _SECURE
        if secure:
            return Unknown(name)
        if (passed := _entry(self.arguments, name)[1]) is not None:
            return passed
        default = definition.get("defaultValue") if isinstance(definition, dict) else None
        return Unknown(key or name) if default in (None, "") else self._deeper(default)

    def variable(self, name: str) -> Any:
        """Return the value of a variable; Unknown if the template does not define it."""
        value = _entry(self.variables, name)[1]
        return Unknown(name) if value is None else self._deeper(value)

    def _deeper(self, value: Any) -> Any:
        """Return the evaluated value of a definition, one level deeper."""
        scope = TemplateScope(self.file, self.parameters, self.variables, self.arguments, self.depth + 1)
        return scope._evaluate(value) if isinstance(value, str) else scope.resolve(value)


class _Evaluation:
    """Evaluation of one expression by recursive descent: call ( '.' name | '[' index ']' )* | text | number."""

    def __init__(self, text: str, scope: TemplateScope) -> None:
        self.scope = scope
        self.tokens = _TOKEN.findall(text)
        self.readable = not _TOKEN.sub("", text).strip()
        self.position = 0

    def result(self) -> Any:
        """Return the value of the expression; Unknown if it cannot be evaluated."""
        if not self.readable:
            return Unknown("expression")
        try:
            value = self._value()
        except (IndexError, RecursionError):
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
                value = _member(value, self._next())
            else:
                value = _member(value, self._value())
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
        return str(self.tokens[self.position - 1])

    def _pass(self, sign: str) -> None:
        if self._next() != sign:
            raise IndexError


def _call(scope: TemplateScope, function: str, arguments: list[Any]) -> Any:
    """Return the result of a function; Unknown if the function or its arguments are not supported."""
    text = [str(argument) for argument in arguments]
    match function.lower(), arguments:
        case "parameters", [str(name)]:
            return scope.parameter(name)
        case "variables", [str(name)]:
            return scope.variable(name)
        case "concat", [*parts] if all(isinstance(part, str | int | Unknown) for part in parts):
            return "".join(text)
        case "format", [str(pattern), *_]:
            return re.sub(r"\{(\d+)\}", lambda slot: text[1:][int(slot[1])], pattern)
        case (("string" | "tolower" | "toupper" | "trim" | "int"), [Unknown() as unknown]):
            return unknown
        case "string", [str() | int()]:
            return text[0]
        case "tolower", [str()]:
            return text[0].lower()
        case "toupper", [str()]:
            return text[0].upper()
        case "trim", [str()]:
            return text[0].strip()
        case "int", [str() | int()] if re.fullmatch(r"-?\d+", text[0]):
            return int(text[0])
    return Unknown(function)


def _member(value: Any, step: Any) -> Any:
    """Return a property of an object or an item of a list; Unknown if there is none."""
    if isinstance(value, dict):
        item = _entry(value, str(step))[1]
        return Unknown(str(step)) if item is None else item
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return value if isinstance(value, Unknown) else Unknown("expression")


def _entry(values: Mapping[str, Any], name: str) -> tuple[str | None, Any]:
    """Return the key and the value of a name in any letter case; (None, None) if it is absent."""
    return next(((key, value) for key, value in values.items() if key.lower() == name.lower()), (None, None))
