"""Render a page from a template.

A template extends `base.html` and fills its blocks. Every value is escaped, unless it is Markup, such as a picture of
`recapture.pages.svg`. A page loads nothing: its style is inside, and its policy forbids scripts and requests,
unless the template says otherwise in the block `policy`.
"""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recapture.errors import DefinitionError
from recapture.pages.terms import meanings, term
from recapture.process import caches

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NONE = "\N{EN DASH}"
"""Text in place of a missing value."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?")


def require_installed() -> None:
    """Raise DefinitionError unless the package that makes pages is installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise DefinitionError("pages need jinja2: install recapture[quality]") from None


def render(package: str, template: str, **values: Any) -> bytes:
    """Return a page as UTF-8: a template of a package, such as `recapture.tools.reports`, with these values."""
    return _environment(package).get_template(template).render(values).encode()


@cache
def _environment(package: str) -> "Environment":
    require_installed()
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from jinja2.bccache import Bucket, BytecodeCache
    from markupsafe import Markup

    folder = caches.user_folder("pages")

    class Compiled(BytecodeCache):
        """Compiled templates, each in a file. A damaged one is written again; no page needs any."""

        def load_bytecode(self, bucket: Bucket) -> None:
            if (content := caches.read(self._file(bucket))) is not None:
                bucket.bytecode_from_string(content)

        def dump_bytecode(self, bucket: Bucket) -> None:
            caches.write(self._file(bucket), bucket.bytecode_to_string())

        def _file(self, bucket: Bucket) -> Path:
            assert folder is not None
            return folder / bucket.key

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader("recapture.pages", ".")]),
        bytecode_cache=None if folder is None else Compiled(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = number
    environment.filters["share"] = share
    environment.filters["duration"] = duration
    environment.filters["times"] = times
    environment.globals["term"], environment.globals["meanings"] = term, meanings
    environment.globals["style"] = Markup(files("recapture.pages").joinpath("style.css").read_text("utf-8"))
    return environment


def times(text: str) -> "Markup":
    """Return a text for a page in which no line ends within a time."""
    from markupsafe import Markup, escape

    return Markup(_TIME.sub(r'<span class="time">\g<0></span>', str(escape(text))))


def number(value: float | None) -> str:
    """Return a number with separators and at most three decimals; an en dash for None."""
    if value is None:
        return NONE
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.001 else f"{value:.3g}"


def share(part: float | None, whole: float | None) -> str:
    """Return a part as a percentage that is 0 % or 100 % only if the part is nothing or the whole.

    An en dash if one of them is None, or if the whole is nothing.
    """
    if part is None or not whole:
        return NONE
    percentage = 100 * part / whole
    if part and percentage < 0.1:
        return "< 0.1 %"
    if part != whole and percentage > 99.9:
        return "> 99.9 %"
    return f"{percentage:.1f} %".replace(".0 %", " %")


def duration(seconds: float | None) -> str:
    """Return a duration in the two largest units that it has, such as "1 h 30 min"; an en dash for None."""
    if seconds is None:
        return NONE
    sign, rest = ("\N{MINUS SIGN}" if seconds < 0 else ""), abs(seconds)
    if rest < 60:
        return f"{sign}{number(round(rest, 1 if rest >= 1 else 3))} s"
    parts: list[str] = []
    rest = round(rest)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return sign + " ".join(filter(None, parts[:2]))
