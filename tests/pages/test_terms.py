"""The terms of pages: their meanings are those of the glossary."""

import re

import pytest

from recapture.pages.terms import anchor, meanings, term, terms
from recapture.tools.advise import page as advice_page
from recapture.tools.compare import page as comparison_page
from recapture.tools.coverage import calendar
from recapture.tools.diff import page as difference_page
from recapture.tools.events import page as explain_page
from recapture.tools.reports import page, trend_page
from tests.paths import ROOT


def test_the_meanings_are_those_of_the_glossary_in_its_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    glossary = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE))
    assert [*terms().items()] == [(name, meaning) for name, meaning in glossary.items() if name in terms()]


@pytest.mark.parametrize(
    "names",
    [
        module.GLOSSARY
        for module in (advice_page, calendar, comparison_page, difference_page, explain_page, page, trend_page)
    ],
)
def test_a_page_explains_terms_that_have_an_anchor_each(names: tuple[str, ...]) -> None:
    explained = meanings(names)
    assert {name for _, name, _ in explained} == set(names)
    assert len({id for id, _, _ in explained}) == len(names)


def test_a_term_is_a_link_to_its_meaning_and_its_text_is_escaped() -> None:
    assert anchor("verdict (of an event)") == "term-verdict"
    assert term("late", "<late>") == '<a class="term" href="#term-late">&lt;late&gt;</a>'
    with pytest.raises(KeyError):
        meanings(["unheard-of"])
