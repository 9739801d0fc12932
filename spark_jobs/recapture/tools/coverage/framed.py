"""Pages that Airflow frames: they take its theme, and their links can lead the whole window elsewhere."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from recapture.pages.page import render

PACKAGE = "recapture.tools.coverage"


def render_framed(template: str, *scripts: str, **values: Any) -> bytes:
    """Return a page. `scripts` are files of this package; the policy of the page forbids all others."""
    texts = [files(PACKAGE).joinpath(name).read_text("utf-8") for name in ("framed.js", *scripts)]
    script = "\n".join(texts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(PACKAGE, template, script=script, script_hash=f"'sha256-{digest}'", **values)
