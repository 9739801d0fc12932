"""Regular expressions that RE2 and Python read in the same way, as LIKE, PATINDEX and REGEXMATCH are compiled to."""

import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc


class PatternError(ValueError):
    """A pattern that may mean something else; the message says which part, and what to write instead."""


@dataclass(frozen=True)
class Pattern:
    """A pattern in the languages of Python and of RE2."""

    python: re.Pattern[str]
    re2: str | None
    """None if RE2 cannot express it."""

    @property
    def re2_group(self) -> str | None:
        """Pattern with a name for its first group, with which it begins; None if RE2 cannot express it."""
        return None if self.re2 is None else self.re2.replace("^(", "^(?P<first>", 1)


@lru_cache(maxsize=1024)
def pattern_of(regex: str) -> Pattern:
    r"""Return the pattern of a regular expression, in which `\z` is the end of the string."""
    python = re.sub(r"\\(.)", lambda escape: "\\Z" if escape[1] == "z" else escape[0], regex, flags=re.DOTALL)
    return Pattern(re.compile(python), _re2(regex))


def _re2(regex: str) -> str | None:
    try:
        pc.match_substring_regex(pa.array([""]), pattern=regex)
    except pa.ArrowInvalid:
        return None
    return regex
