"""Terms that pages use, with their meanings in `docs/glossary.md`: a page explains its words without the network."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup


@cache
def terms() -> Mapping[str, str]:
    """Return the meanings of the terms, in the order of the glossary."""
    meanings: dict[str, str] = json.loads(files("recapture.pages").joinpath("terms.json").read_text("utf-8"))
    return meanings


def term(name: str, text: str | None = None) -> "Markup":
    """Return a link from a term to its meaning at the end of the page; `text` is shown instead of the term."""
    from markupsafe import Markup

    return Markup('<a class="term" href="#{}">{}</a>').format(anchor(name), text or name)


def meanings(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return the anchor, the name and the meaning of each of these terms, in the order of the glossary.

    Raise KeyError for one that the glossary does not have.
    """
    chosen = {name: terms()[name] for name in names}
    order = list(terms())
    return [(anchor(name), name, chosen[name].replace("`", "")) for name in sorted(chosen, key=order.index)]


def anchor(name: str) -> str:
    """Return the id of a term's meaning in a page."""
    return "term-" + name.partition(" (")[0].lower().replace(" ", "-").replace(".", "-")
