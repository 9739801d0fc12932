"""A headless Chromium for tests of pages: the pinned one of docker/browser, or the system's where it cannot run."""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from embedded.node import BROWSER

UNPACKED = BROWSER / "node_modules" / ".chromium"
OPTIONS = ["--headless=shell", "--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a running browser. No other code of this thread may run an event loop until it is closed."""
    program = _program()
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "LD_LIBRARY_PATH": str(UNPACKED / "al2023" / "lib"),
        "FONTCONFIG_FILE": str(BROWSER / "fonts.conf"),
        "XDG_CACHE_HOME": str(UNPACKED / "cache"),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=OPTIONS, env=environment if program.is_relative_to(UNPACKED) else None
        )
        try:
            yield browser
        finally:
            browser.close()


def _program() -> Path:
    """Return the path of the browser. Raise RuntimeError if there is none."""
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        if not (UNPACKED / "chromium").exists():
            raise RuntimeError("the browser is not installed: run `make browser`")
        return UNPACKED / "chromium"
    for program in filter(None, map(shutil.which, NAMES)):
        return Path(program)
    raise RuntimeError(f"the browser of docker/browser needs Linux on x86_64: install one of {', '.join(NAMES)}")
