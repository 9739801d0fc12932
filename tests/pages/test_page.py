"""Pages: escaping, self-containment, and the words for numbers."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from recapture.pages import page
from recapture.pages.page import NONE
from recapture.pages.svg import Chart, Text, element

HOSTILE = "</style></svg><script>alert(1)</script>\" onload='x' & {{ 7 * 7 }}"
PAGE = """\
{% extends "base.html" %}
{% block title %}{{ text }}{% endblock %}
{% block content %}<p title="{{ text }}">{{ text }}</p>{{ picture }}{% endblock %}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the template `page.html`."""
    folder = tmp_path / f"pages_of_{tmp_path.name}"  # what is imported and found stays for later tests
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "page.html").write_text(PAGE)
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def elements(html: str) -> list[tuple[str, list[str]]]:
    """Return the elements of a page as a browser sees them: their names, each with those of its attributes."""
    found = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, [name for name, _ in attrs]))

    Parser().feed(html)
    return found


def picture(text: str) -> str:
    """Return a picture with the text in its label, in a text and in an attribute."""
    return Chart(100, 20, [element("rect", width=50, height=20, fill=text), Text(text, 0, 12)]).svg(text)


def test_markup_in_a_value_is_text_in_the_page(package: str) -> None:
    harmless, hostile = (
        page.render(package, "page.html", text=text, picture=picture(text)).decode() for text in ("x", HOSTILE)
    )
    assert elements(hostile) == elements(harmless)
    assert hostile.count("{{ 7 * 7 }}") > 4


def test_a_page_names_nothing_to_load(package: str) -> None:
    rendered = page.render(package, "page.html", text="x", picture=picture("x")).decode()
    assert "default-src 'none'" in rendered
    assert re.findall(r"""(?:src|href)="(?!#)|@import|url\((?!#)""", rendered) == []


def test_a_value_that_the_template_lacks_is_an_error(package: str) -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="picture"):
        page.render(package, "page.html", text="x")


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder of caches, of which no page knows yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    page._environment.cache_clear()
    yield tmp_path / "caches"
    page._environment.cache_clear()


def rendered_anew(package: str) -> bytes:
    """Return a page of a new environment, as a new process has it."""
    page._environment.cache_clear()
    return page.render(package, "page.html", text="x", picture="")


def test_a_page_needs_no_folder_for_compiled_templates(package: str, caches: Path) -> None:
    caches.touch()
    assert b"<p title=" in rendered_anew(package)


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"x" + content])
def test_a_damaged_compiled_template_is_made_anew(package: str, caches: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = rendered_anew(package)
    files = {path: path.read_bytes() for path in (caches / "recapture" / "pages").iterdir()}
    assert files
    for path, content in files.items():
        path.write_bytes(damage(content))
    assert rendered_anew(package) == whole
    assert {path: path.read_bytes() for path in files} == files


def test_compiled_templates_are_kept_where_nobody_else_can_write(package: str, caches: Path) -> None:
    folder = caches / "recapture" / "pages"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    rendered_anew(package)
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    rendered_anew(package)
    assert list(folder.iterdir()) != []


@pytest.mark.parametrize(
    ("value", "text"), [(None, NONE), (0, "0"), (1234567, "1,234,567"), (2.0, "2"), (0.1236, "0.124"), (1e-7, "1e-07")]
)
def test_numbers_have_separators_and_few_decimals(value: float | None, text: str) -> None:
    assert page.number(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, NONE),
        (0, 9, "0 %"),
        (1, 3, "33.3 %"),
        (1, 2, "50 %"),
        (1, 10**6, "< 0.1 %"),
        (10**6 - 1, 10**6, "> 99.9 %"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_all(part: int, whole: int, text: str) -> None:
    assert page.share(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, NONE),
        (0, "0 s"),
        (0.25, "0.25 s"),
        (12.34, "12.3 s"),
        (-90, "\N{MINUS SIGN}1 min 30 s"),
        (3600, "1 h"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float | None, text: str) -> None:
    assert page.duration(seconds) == text


def test_without_the_packages_of_pages_the_error_names_them() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None; from recapture.pages import page\n"
        "try: page.require_installed()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "DefinitionError pages need jinja2: install recapture[quality]\n"
