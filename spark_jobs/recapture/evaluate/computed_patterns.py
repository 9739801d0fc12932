"""PATINDEX and REGEXMATCH with a pattern that each row computes."""

from collections.abc import Callable, Mapping

from recapture.errors import DefinitionError
from recapture.evaluate.by_value import by_value
from recapture.evaluate.faults import stop
from recapture.evaluate.frames import Kernel
from recapture.evaluate.matching import first_match
from recapture.query.analyse.ecmascript import match_regex
from recapture.query.analyse.patterns import position_regex
from recapture.query.plan.regular import Pattern, PatternError, pattern_of


def _compiling(name: str, regex: Callable[[str], str]) -> Callable[[str], Pattern]:
    """Return the function that compiles a pattern of a row. A pattern that is not supported stops the run."""

    def compile_pattern(pattern: str) -> Pattern:
        try:
            return pattern_of(regex(pattern))
        except (DefinitionError, PatternError) as error:
            stop("INVALID_PATTERN", f"{name}: {pattern!r}: {error}")

    return compile_pattern


FIRST_MATCH: Mapping[str, Kernel] = {
    name: by_value(first_match, _compiling(name, regex))
    for name, regex in (("PATINDEX", position_regex), ("REGEXMATCH", match_regex))
}
"""Kernels of `Op.FIRST_MATCH_COMPUTED`, by the name of the function."""
