"""LIKE and regular expressions."""

import re
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.evaluate.distinct import each, of_many
from recapture.evaluate.faults import stop
from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.vectors import from_arrow
from recapture.query.plan.regular import Pattern, pattern_of


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> str:
    r"""Return a pattern of LIKE as a regular expression of RE2 and Python; `\` escapes."""
    written: list[str] = []
    index = 0
    while index < len(pattern):
        sign = pattern[index]
        if sign == "\\":
            index += 1
            if pattern[index : index + 1] not in ("\\", "%", "_"):
                stop("INVALID_FORMAT", f"LIKE: {pattern!r} has an unknown escape")
            written.append(re.escape(pattern[index]))
        else:
            written.append({"%": ".*", "_": "."}.get(sign) or _escaped(sign))
        index += 1
    return f"(?s)\\A{''.join(written)}\\z"


def _escaped(character: str) -> str:
    return re.escape(character) if character.isascii() else character


def like(frame: Frame, node: Node) -> Any:
    column = frame.array(node.arguments[0])
    (pattern,) = node.parameters
    plain = _plain(pattern)
    if plain is None:
        return from_arrow(_matched(column, pattern_of(pattern)))
    function, string = plain
    return from_arrow(function(column, string))


@lru_cache(maxsize=1024)
def _plain(pattern: str) -> Any:
    """Return a function of Arrow and its string, where they do the same as a pattern of LIKE; None for none."""
    inner = pattern.removeprefix("(?s)\\A").removesuffix("\\z")
    starts, ends = inner.startswith(".*"), inner.endswith(".*") and len(inner) > 2 and not inner.endswith("\\.*")
    core = inner[2 * starts : len(inner) - 2 * ends]
    string = re.sub(r"\\(.)", r"\1", core, flags=re.DOTALL)
    if re.sub(r"\\.", "", core, flags=re.DOTALL).replace(".", "") != re.sub(r"\\.", "", core, flags=re.DOTALL):
        return None
    if not string:
        return None
    if starts and ends:
        return (lambda column, sought: pc.match_substring(column, pattern=sought)), string
    if starts:
        return (lambda column, sought: pc.ends_with(column, pattern=sought)), string
    if ends:
        return (lambda column, sought: pc.starts_with(column, pattern=sought)), string
    return pc.equal, string


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of LIKE without escapes."""
    return pattern_of(like_pattern(pattern.replace("\\", "\\\\"))).python


like_computed = of_many(lambda string, pattern: _compiled(pattern).match(string) is not None)


def matches(frame: Frame, node: Node) -> Any:
    """Return whether a pattern matches somewhere in strings."""
    return from_arrow(_matched(frame.array(node.arguments[0]), node.parameters[0]))


def _matched(column: pa.Array, pattern: Pattern) -> pa.Array:
    if pattern.re2 is not None:
        return pc.match_substring_regex(column, pattern=pattern.re2)
    return each(lambda string: pattern.python.search(string) is not None, column, pa.bool_())


def first_match(frame: Frame, node: Node) -> Any:
    """Return the length of what the first group of a pattern matches in `@` and each string; 0 for no match."""
    column = frame.array(node.arguments[0])
    pattern: Pattern = node.parameters[0]
    if pattern.re2_group is not None:
        extracted = pc.extract_regex(pc.binary_join_element_wise("@", column, ""), pattern=pattern.re2_group)
        lengths = pc.utf8_length(pc.struct_field(extracted, 0)).fill_null(0).cast(pa.int64())
        return from_arrow(pc.if_else(column.is_valid(), lengths, pa.scalar(None, pa.int64())))

    def length(string: str) -> int:
        match = pattern.python.search(f"@{string}")
        return 0 if match is None else len(match[1])

    return from_arrow(each(length, column, pa.int64()))
