"""The browser of the tests draws text and runs scripts, in light and in dark."""

from typing import Literal

import pytest
from playwright.sync_api import Page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_drawn_in_light_and_in_dark(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_content(
        "<span>text</span><script>document.title = document.querySelector('span').offsetWidth > 20</script>"
    )
    assert page.title() == "true"
    assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
