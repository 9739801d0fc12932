"""A headless Chromium for tests of pages: the pinned one of docker/browser, or the system's where it cannot run."""

import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from embedded.node import BROWSER

AXE = BROWSER / "node_modules" / "axe-core" / "axe.min.js"
"""Finds what keeps people from using a page, for example because they do not see it."""
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


class Axe:
    """axe-core, loaded into a page that is open."""

    def __init__(self, page: Page) -> None:
        """Load it into another world than that of the page, whose policy allows no other script."""
        if not AXE.exists():
            raise RuntimeError("axe-core is not installed: run `make browser`")
        self._session = page.context.new_cdp_session(page)
        frame = self._session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = self._session.send("Page.createIsolatedWorld", {"frameId": frame})
        self._world = world["executionContextId"]
        self._value(f"{AXE.read_text()};axe.version")

    def serious_findings(self, *rules: str) -> list[str]:
        """Return what it finds on the page and calls serious or critical, with the first element of each.

        All rules apply unless some are named.
        """
        options = json.dumps({"runOnly": rules} if rules else {})
        findings = json.loads(self._value(f"axe.run({options}).then((results) => JSON.stringify(results.violations))"))
        return [
            f"{finding['id']}: {finding['help']}: {finding['nodes'][0]['html']}"
            for finding in findings
            if finding["impact"] in ("serious", "critical")
        ]

    def _value(self, expression: str) -> str:
        call = {"expression": expression, "contextId": self._world, "awaitPromise": True, "returnByValue": True}
        value: str = self._session.send("Runtime.evaluate", call)["result"]["value"]
        return value


def _program() -> Path:
    """Return the path of the browser. Raise RuntimeError if there is none."""
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        if not (UNPACKED / "chromium").exists():
            raise RuntimeError("the browser is not installed: run `make browser`")
        return UNPACKED / "chromium"
    for program in filter(None, map(shutil.which, NAMES)):
        return Path(program)
    raise RuntimeError(f"the browser of docker/browser needs Linux on x86_64: install one of {', '.join(NAMES)}")
