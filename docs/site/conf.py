"""Settings of Sphinx, which makes a site of the pages: `make site`. They stay Markdown that can be read without it.

The source folder is a checkout, so links lead where they lead there. The order of the pages is that of the table in
the README. `build.py` sets the version and the title.
"""

import re

from sphinx.application import Sphinx

project = "Recapture"
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/performance/*.md", "tests/vectors/README.md", "benchmarks/README.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 5
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # some examples are wrong on purpose
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["versions.css"]
html_js_files = ["versions.js"]
templates_path = ["templates"]
html_copy_source = False
MORE = ("docs/performance/results", "tests/vectors/README", "benchmarks/README", "CHANGELOG", "SECURITY")
"""Pages that the table does not have. An earlier version may lack some of them."""


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the contents of the site to the README."""
    if page == root_doc:
        pages = re.findall(r"^\| \[.*\]\((.*)\.md\) \|", source[0], re.MULTILINE)
        more = [page for page in MORE if page in app.env.found_docs]
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", *pages, *more, "```", ""])


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)
