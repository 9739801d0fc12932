"""Read the scalar Spark SQL that the compiler writes.

`x` + 5L => Call("+", (Name("x"), Constant(5, BIGINT)))

The text is what Spark would read, so that precedence is Spark's too. Anything that the compiler does not write is
refused.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from recapture.evaluate.refusal import NotEvaluatedError


@dataclass(frozen=True)
class Constant:
    """A literal."""

    value: bool | int | float | str | None
    type: str
    """Name of its Spark type, such as BIGINT; NULL for NULL."""


@dataclass(frozen=True)
class Name:
    """A column, a parameter of a lambda, or a field of one of them."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Lambda:
    """A function of one or two parameters: x -> x + 1"""

    parameters: tuple[str, ...]
    body: "Syntax"


@dataclass(frozen=True)
class Call:
    """A call of a function, or an operation; the name is in lower case.

    "case" has pairs of a condition and a value, and the default in the end. "cast bigint" and "try_cast bigint" name
    the type.
    """

    function: str
    arguments: tuple["Syntax", ...]


Syntax = Constant | Name | Lambda | Call

_TOKEN = re.compile(
    r"""\s+
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<string>'(?:[^'\\]|\\.)*')
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[LD]?)(?![0-9A-Za-z_])
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign><>|!=|<=|>=|->|[-+*/%&|^~=<>(),.\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_BINARY: tuple[tuple[str, ...], ...] = (_COMPARISONS, ("|",), ("^",), ("&",), ("+", "-"), ("*", "/", "%", "div"))
"""Binary operators of values, the loosest first. All are left-associative."""
_TYPES = ("bigint", "int", "double", "boolean", "string", "timestamp")
_KEYWORDS = {
    *("and", "or", "not", "is", "in", "like", "rlike", "between", "case", "when", "then", "else", "end", "as", "div"),
    *("from", "for", "placing", "over", "ignore", "distinct"),
}


@lru_cache(maxsize=4096)
def parsed(text: str) -> Syntax:
    """Return the expression that a text of Spark SQL holds. Raise NotEvaluatedError if it is not a known one."""
    try:
        parser = _Parser(_tokens(text))
        expression = parser.expression()
    except RecursionError:
        raise NotEvaluatedError("an expression is nested too deeply") from None
    parser.require_end()
    return expression


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return the kind and the value of each token."""
    tokens: list[tuple[str, str]] = []
    index = 0
    while index < len(text):
        match = _TOKEN.match(text, index)
        if match is None:
            raise NotEvaluatedError(f"`{text[index : index + 20]}` is not known SQL")
        index = match.end()
        kind = match.lastgroup
        if kind == "quoted":
            tokens.append(("name", match[kind][1:-1].replace("``", "`")))
        elif kind == "string":
            tokens.append((kind, _unescaped(match[kind][1:-1])))
        elif kind == "word" and (match[kind].lower() in _KEYWORDS):
            tokens.append(("keyword", match[kind].lower()))
        elif kind is not None:
            tokens.append((kind, match[kind]))
    return [*tokens, ("end", "")]


def _unescaped(string: str) -> str:
    if re.search(r"\\[^\\']", re.sub(r"\\[\\']", "", string)):
        raise NotEvaluatedError("a string has an unknown escape")
    return re.sub(r"\\([\\'])", r"\1", string)


class _Parser:
    """A recursive descent over tokens, after the grammar of Spark's `valueExpression` and `booleanExpression`."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.index = 0

    def expression(self) -> Syntax:
        left = self._conjunction()
        while self._taken("or"):
            left = Call("or", (left, self._conjunction()))
        return left

    def require_end(self) -> None:
        if self.tokens[self.index][0] != "end":
            self._refuse()

    def _conjunction(self) -> Syntax:
        left = self._negation()
        while self._taken("and"):
            left = Call("and", (left, self._negation()))
        return left

    def _negation(self) -> Syntax:
        if self._taken("not"):
            return Call("not", (self._negation(),))
        return self._predicate(self._binary(0))

    def _predicate(self, value: Syntax) -> Syntax:
        if self._taken("is"):
            negated = self._taken("not")
            self._take("word", "NULL")
            tested = Call("is null", (value,))
            return Call("not", (tested,)) if negated else tested
        negated = self._taken("not")
        if self._taken("in"):
            self._take("sign", "(")
            members = [self.expression()]
            while self._taken(","):
                members.append(self.expression())
            self._take("sign", ")")
            predicate: Syntax = Call("in", (value, *members))
        elif self._taken("between"):
            low = self._binary(0)
            self._take("keyword", "and")
            predicate = Call("and", (Call(">=", (value, low)), Call("<=", (value, self._binary(0)))))
        elif self._taken("like"):
            predicate = Call("like", (value, self._binary(0)))
        elif self._taken("rlike"):
            predicate = Call("rlike", (value, self._binary(0)))
        elif negated:
            self._refuse()
        else:
            return value
        return Call("not", (predicate,)) if negated else predicate

    def _binary(self, level: int) -> Syntax:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            kind, sign = self.tokens[self.index]
            if kind not in ("sign", "keyword") or sign not in _BINARY[level]:
                return left
            self.index += 1
            left = Call("<>" if sign == "!=" else sign, (left, self._binary(level + 1)))

    def _unary(self) -> Syntax:
        if self._taken("-"):
            kind, text = self.tokens[self.index]
            if kind == "number":
                self.index += 1
                return self._suffixed(_constant("-" + text))
            return Call("negative", (self._unary(),))
        if self._taken("~"):
            return Call("~", (self._unary(),))
        return self._suffixed(self._primary())

    def _suffixed(self, value: Syntax) -> Syntax:
        while True:
            if self._taken("["):
                value = Call("[]", (value, self.expression()))
                self._take("sign", "]")
            elif self._taken("."):
                kind, field = self.tokens[self.index]
                if kind not in ("word", "name"):
                    self._refuse()
                self.index += 1
                value = Name((*value.parts, field)) if isinstance(value, Name) else Call(f".{field}", (value,))
            else:
                return value

    def _primary(self) -> Syntax:
        kind, text = self.tokens[self.index]
        self.index += 1
        match kind:
            case "number":
                return _constant(text)
            case "string":
                return Constant(text, "STRING")
            case "name":
                return self._arrow(text) if self._next("->") else Name((text,))
            case "keyword" if text == "case":
                return self._case()
            case "sign" if text == "(":
                return self._parenthesis()
            case "word":
                return self._word(text)
        self.index -= 1
        self._refuse()

    def _word(self, word: str) -> Syntax:
        lower = word.lower()
        if self._next("("):
            self.index += 1
            if lower in ("cast", "try_cast"):
                return self._cast(lower)
            if lower == "trim":
                return self._trim()
            if lower == "overlay":
                return self._overlay()
            arguments: list[Syntax] = []
            while not self._taken(")"):
                if arguments:
                    self._take("sign", ",")
                arguments.append(self.expression())
            return Call(lower, tuple(arguments))
        if lower in ("true", "false"):
            return Constant(lower == "true", "BOOLEAN")
        if lower == "null":
            return Constant(None, "NULL")
        return self._arrow(word) if self._next("->") else Name((word,))

    def _arrow(self, *parameters: str) -> Syntax:
        self._take("sign", "->")
        return Lambda(parameters, self.expression())

    def _parenthesis(self) -> Syntax:
        (first, name), comma, (second, other), close, arrow = (self.tokens + [("end", "")] * 4)[
            self.index : self.index + 5
        ]
        are_names = first in ("word", "name") and second in ("word", "name")
        if are_names and (comma, close, arrow) == (("sign", ","), ("sign", ")"), ("sign", "->")):
            self.index += 4
            return self._arrow(name, other)
        inner = self.expression()
        self._take("sign", ")")
        return inner

    def _case(self) -> Syntax:
        parts: list[Syntax] = []
        while self._taken("when"):
            parts.append(self.expression())
            self._take("keyword", "then")
            parts.append(self.expression())
        parts.append(self.expression() if self._taken("else") else Constant(None, "NULL"))
        self._take("keyword", "end")
        if len(parts) < 3:
            self._refuse()
        return Call("case", tuple(parts))

    def _cast(self, function: str) -> Syntax:
        value = self.expression()
        self._take("keyword", "as")
        kind, type_ = self.tokens[self.index]
        self.index += 1
        name = type_.lower()
        if kind != "word" or name not in (*_TYPES, "decimal"):
            raise NotEvaluatedError(f"CAST to {type_}")
        if name == "decimal":
            for expected in (("sign", "("), ("number", "38"), ("sign", ","), ("number", "22"), ("sign", ")")):
                self._take(*expected)
        self._take("sign", ")")
        return Call(f"{function} {name}", (value,))

    def _trim(self) -> Syntax:
        kind, ends = self.tokens[self.index]
        if kind != "word" or ends not in ("LEADING", "TRAILING", "BOTH"):
            self._refuse()
        self.index += 1
        characters = self.expression()
        self._take("keyword", "from")
        text = self.expression()
        self._take("sign", ")")
        return Call(f"trim {ends.lower()}", (text, characters))

    def _overlay(self) -> Syntax:
        parts = [self.expression()]
        for word in ("placing", "from", "for"):
            self._take("keyword", word)
            parts.append(self.expression())
        self._take("sign", ")")
        return Call("overlay", tuple(parts))

    def _next(self, sign: str) -> bool:
        return self.tokens[self.index] == ("sign", sign)

    def _taken(self, word: str) -> bool:
        """Take a sign or a keyword if it comes next, and return whether it did."""
        kind, text = self.tokens[self.index]
        taken = kind in ("sign", "keyword") and text == word
        self.index += taken
        return taken

    def _take(self, kind: str, text: str) -> None:
        if self.tokens[self.index] != (kind, text):
            self._refuse()
        self.index += 1

    def _refuse(self) -> NoReturn:
        near = " ".join(text for _, text in self.tokens[max(0, self.index - 2) : self.index + 3])
        raise NotEvaluatedError(f"`{near}` is not known SQL")


def _constant(number: str) -> Constant:
    if number.endswith("L"):
        return Constant(int(number[:-1]), "BIGINT")
    if number.endswith("D"):
        return Constant(float(number[:-1]), "DOUBLE")
    try:
        return Constant(int(number), "INT")
    except ValueError:
        raise NotEvaluatedError(f"{number} is a decimal") from None
