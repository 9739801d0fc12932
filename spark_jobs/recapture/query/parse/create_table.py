"""CREATE TABLE input (field type, …): the declared types of the fields."""

from collections.abc import Collection

from sqlglot.tokenizer_core import Token, TokenType

from recapture.model import AsaType
from recapture.query.parse.names import Path
from recapture.query.parse.source import Source
from recapture.query.parse.tokens import depths

_TYPES = {type_.value: type_ for type_ in AsaType}
_NAMES = ", ".join(_TYPES)


def declared_types(
    source: Source, declarations: list[list[Token]], inputs: Collection[str]
) -> dict[str, dict[Path, AsaType]]:
    """Return the declared types by input and field.

    CREATE TABLE input (id bigint, site.name nvarchar(max)) => {"input": {("id",): BIGINT, ("site", "name"): TEXT}}

    Raise DefinitionError for unknown types, for fields or inputs that are declared twice, and for other tables than the
    inputs.
    """
    types: dict[str, dict[Path, AsaType]] = {}
    for tokens in declarations:
        head = tokens[:4]
        if head[3].token_type != TokenType.L_PAREN:
            example = next(iter(inputs), "input")
            raise source.error(tokens[0], f"write CREATE TABLE {example} (field type, …)")
        alias = next((alias for alias in inputs if alias.lower() == head[2].text.lower()), None)
        if alias is None:
            raise source.error(head[2], f"CREATE TABLE {head[2].text}: {inputs_text(inputs)}")
        if alias in types:
            raise source.error(tokens[0], f"`{alias}` has a CREATE TABLE already: remove one")
        types[alias] = _fields(source, tokens)
    return types


def inputs_text(inputs: Collection[str]) -> str:
    """Return which inputs there are, for messages."""
    if not inputs:
        return "the query has no input and no earlier step of this name"
    *others, last = (f"`{alias}`" for alias in inputs)
    return f"the pipeline's inputs are {', '.join(others)} and {last}" if others else f"the pipeline's input is {last}"


def _fields(source: Source, tokens: list[Token]) -> dict[Path, AsaType]:
    """Return the types of the fields in a CREATE TABLE."""
    types: dict[Path, AsaType] = {}
    declared: set[str] = set()
    """Names in lower case."""
    for column in _columns(tokens[4:-1]):
        if not column:
            raise source.error(tokens[-1], "a field and its type are missing in CREATE TABLE")
        path, rest = _path(source, column)
        type_ = _TYPES.get("".join(token.text for token in rest).lower())
        if type_ is None:
            raise source.error(rest[0] if rest else column[0], f"the type of `{'.'.join(path)}` is one of {_NAMES}")
        name = ".".join(path)
        if name.lower() in declared:
            raise source.error(column[0], f"`{name}` is declared twice")
        declared.add(name.lower())
        types[path] = type_
    return types


def _columns(tokens: list[Token]) -> list[list[Token]]:
    columns: list[list[Token]] = [[]]
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth == 0 and token.token_type == TokenType.COMMA:
            columns.append([])
        else:
            columns[-1].append(token)
    return columns


def _path(source: Source, tokens: list[Token]) -> tuple[Path, list[Token]]:
    names, end = [tokens[0]], 1
    while end + 1 < len(tokens) and tokens[end].token_type == TokenType.DOT:
        names.append(tokens[end + 1])
        end += 2
    for name in names:
        if source.text[name.start] not in '["' and not name.text.isidentifier():
            raise source.error(name, f"`{name.text}` is not a field's name: write it in brackets, [{name.text}]")
        source.case_sensitive.add(name.start)
    return tuple(name.text for name in names), tokens[end:]
