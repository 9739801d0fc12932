"""The site of the pages: a reader sees which version a page is about, and changes to another one, without a server."""

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import Axe
from tests.paths import ROOT

PAGES = ("CHANGELOG.md", "SECURITY.md", "docs/performance/results.md", "tests/vectors/README.md")
"""Pages besides those that the README's table names."""


def load_build() -> Any:
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(checkout: Path, *arguments: str) -> None:
    author = ["-c", "user.name=An author", "-c", "user.email=author@example.com"]
    subprocess.run(["git", *author, *arguments], cwd=checkout, check=True, capture_output=True)


def write_pages(checkout: Path, *names: str) -> None:
    """Write a page for each of these names, and a README whose table has them."""
    table = "\n".join(f"| [{name}](docs/{name}.md) | a page |" for name in names)
    (checkout / "README.md").write_text(f"# Recapture\n\n| page | about |\n|---|---|\n{table}\n")
    for file in (*PAGES, *(f"docs/{name}.md" for name in names)):
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text(f"# {Path(file).stem}\n\n## A section\nText.\n")


def release(checkout: Path, *tags: str) -> None:
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "Release")
    for tag in tags:
        git(checkout, "tag", tag)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three releases; the page `tables` is new after the last one, and has not been released."""
    folder = tmp_path_factory.mktemp("checkout")
    git(folder, "init", "--quiet")
    write_pages(folder, "pipeline")
    release(folder, "v0.1.0")
    release_notes = folder / "CHANGELOG.md"
    release_notes.write_text(release_notes.read_text() + "A [link](missing.md) that leads nowhere.\n")
    release(folder, "v0.1.1", "v0.1.1-rc1")
    write_pages(folder, "pipeline", "tables")
    return folder


@pytest.fixture(scope="module")
def site(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of version 0.2.0."""
    folder = tmp_path_factory.mktemp("site")
    load_build().main(checkout, folder, "0.2.0")
    return folder


@pytest.mark.parametrize(
    ("present", "releases"),
    [
        ("0.2.0", ["0.1.1"]),
        ("0.2.0.dev7", ["0.1.1"]),
        ("0.1.2", []),
        ("0.1.2.dev7", ["0.1.1"]),
        ("0.1.1", []),
        ("0.1.0", []),
    ],
)
def test_a_site_has_the_newest_release_of_each_minor_version_before_it(
    checkout: Path, present: str, releases: list[str]
) -> None:
    assert load_build().releases(checkout, present) == releases


def test_the_first_page_is_that_of_the_newest_version(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.wait_for_url((site / "0.2.0" / "README.html").as_uri())
    expect(page).to_have_title("Recapture 0.2.0")


def test_a_reader_changes_to_the_same_place_in_another_version(site: Path, page: Page) -> None:
    page.goto((site / "0.2.0" / "docs" / "pipeline.html").as_uri() + "#a-section")
    version = page.get_by_label("Version")
    expect(version).to_have_value("0.2.0")
    expect(page.get_by_role("complementary").get_by_text("The newest version is")).to_have_count(0)
    version.select_option("0.1.1")
    page.wait_for_url((site / "0.1.1" / "docs" / "pipeline.html").as_uri() + "#a-section")
    page.go_back()
    expect(version).to_have_value("0.2.0")


def test_a_page_that_another_version_lacks_leads_to_its_first_page(site: Path, page: Page) -> None:
    page.goto((site / "0.2.0" / "docs" / "tables.html").as_uri())
    page.get_by_label("Version").select_option("0.1.1")
    page.wait_for_url((site / "0.1.1" / "README.html").as_uri())


def test_a_page_of_an_older_version_leads_to_the_newest_one(site: Path, page: Page) -> None:
    page.goto((site / "0.1.1" / "docs" / "pipeline.html").as_uri())
    notice = page.get_by_text("These are the pages of version 0.1.1. The newest version is 0.2.0.")
    expect(notice).to_be_visible()
    notice.get_by_role("link").click()
    page.wait_for_url((site / "0.2.0" / "docs" / "pipeline.html").as_uri())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_change_the_version_in_any_window(site: Path, browser: Browser, scheme: Any, width: int) -> None:
    with browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 700}) as context:
        page = context.new_page()
        page.goto((site / "0.1.1" / "docs" / "pipeline.html").as_uri())
        if width == 390:
            page.locator("label.nav-overlay-icon").first.click()
        expect(page.get_by_label("Version")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert Axe(page).serious_findings("label", "select-name", "color-contrast") == []


def test_one_version_alone_is_named_without_a_choice(site: Path, page: Page, tmp_path: Path) -> None:
    (site / "0.2.0").rename(tmp_path / "alone")
    try:
        page.goto((tmp_path / "alone" / "README.html").as_uri())
        expect(page.locator(".versions")).to_have_text("Version 0.2.0")
        expect(page.get_by_label("Version")).to_have_count(0)
    finally:
        (tmp_path / "alone").rename(site / "0.2.0")


def test_a_link_that_leads_nowhere_fails_only_in_the_version_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    page = checkout / "SECURITY.md"
    before = page.read_text()
    page.write_text(f"{before}A [link](missing.md).\n")
    try:
        with pytest.raises(subprocess.CalledProcessError):
            load_build().main(checkout, tmp_path, "0.2.0")
    finally:
        page.write_text(before)
