"""The expressions of ARM templates: "[parameters('x')]", "[concat(…)]", and what else names are made with."""

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
    """A value that only a deployment knows: a parameter without a default, or what Azure makes."""

    name: str

    def __str__(self) -> str:
        return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', self.name)}}}"


@dataclass(frozen=True)
class Scope:
    """The parameters and variables that the expressions of one template name.

    `given` are the values that an outer template gives to the parameters of a nested one. A secure parameter is
    never resolved, whatever its default.
    """

    file: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0

    def resolve(self, value: Any) -> Any:
        """The value without expressions; what is unknown stands in it as ${NAME}."""
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        found = self._found(value)
        return str(found) if isinstance(found, Unknown) else found

    def _found(self, value: Any) -> Any:
        if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
            return value
        if value.startswith("[["):
            return value[1:]
        if self.depth > _DEEPEST:
            raise DefinitionError(f"{self.file}: a parameter or variable is defined by itself: correct the template")
        return _Evaluation(value[1:-1], self).result()

    def parameter(self, name: str) -> Any:
        key, definition = _entry(self.parameters, name)
        secure = isinstance(definition, dict) and str(definition.get("type", "")).lower() in _SECURE
        if secure:
            return Unknown(name)
        if (passed := _entry(self.given, name)[1]) is not None:
            return passed
        default = definition.get("defaultValue") if isinstance(definition, dict) else None
        return Unknown(key or name) if default in (None, "") else self._deeper(default)

    def variable(self, name: str) -> Any:
        value = _entry(self.variables, name)[1]
        return Unknown(name) if value is None else self._deeper(value)

    def _deeper(self, value: Any) -> Any:
        scope = Scope(self.file, self.parameters, self.variables, self.given, self.depth + 1)
        return scope._found(value) if isinstance(value, str) else scope.resolve(value)


class _Evaluation:
    """One expression, by recursive descent: call ( '.' name | '[' index ']' )* | text | number."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.scope = scope
        self.tokens = _TOKEN.findall(text)
        self.readable = not _TOKEN.sub("", text).strip()
        self.at = 0

    def result(self) -> Any:
        if not self.readable:
            return Unknown("expression")
        try:
            value = self._value()
        except (IndexError, RecursionError):
            return Unknown("expression")
        return value if self.at == len(self.tokens) else Unknown("expression")

    def _value(self) -> Any:
        token = self._next()
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token.lstrip("-").isdigit():
            return int(token)
        value = _call(self.scope, token, self._arguments())
        while self.at < len(self.tokens) and self.tokens[self.at] in (".", "["):
            if self._next() == ".":
                value = _member(value, self._next())
            else:
                value = _member(value, self._value())
                self._pass("]")
        return value

    def _arguments(self) -> list[Any]:
        self._pass("(")
        arguments: list[Any] = []
        while self.tokens[self.at] != ")":
            if arguments:
                self._pass(",")
            arguments.append(self._value())
        self.at += 1
        return arguments

    def _next(self) -> str:
        self.at += 1
        return str(self.tokens[self.at - 1])

    def _pass(self, sign: str) -> None:
        if self._next() != sign:
            raise IndexError


def _call(scope: Scope, function: str, arguments: list[Any]) -> Any:
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
    if isinstance(value, dict):
        found = _entry(value, str(step))[1]
        return Unknown(str(step)) if found is None else found
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return value if isinstance(value, Unknown) else Unknown("expression")


def _entry(values: Mapping[str, Any], name: str) -> tuple[str | None, Any]:
    """The key and the value of a name in any letter case, as ARM takes names."""
    return next(((key, value) for key, value in values.items() if key.lower() == name.lower()), (None, None))
