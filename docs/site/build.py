"""Build the site of the pages: `python docs/site/build.py FOLDER`. Each version of them has a folder in it.

The versions are that of the checkout and, from the tags before it, the newest patch version of each minor version. The
settings and templates are those of the checkout for all of them. Any page can be opened without a server.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from recapture._version import version

SETTINGS = Path(__file__).parent
ROOT = SETTINGS.parents[1]
START = "README.html"
"""First page of a version."""


def main(checkout: Path, site: Path, present: str) -> None:
    """Build the pages of the checkout as version `present`, and those of its tags.

    Only a page of the checkout can make it fail: a link in it leads nowhere, or its syntax is wrong.
    """
    shutil.rmtree(site, ignore_errors=True)
    build(checkout, site / present, present, "--quiet", "--fail-on-warning", "--keep-going")
    versions = [present]
    for release in releases(checkout, present):
        with tempfile.TemporaryDirectory() as sources:
            archive = subprocess.run(
                ["git", "archive", f"v{release}"], cwd=checkout, stdout=subprocess.PIPE, check=True
            )
            subprocess.run(["tar", "--extract", "--directory", sources], input=archive.stdout, check=True)
            build(Path(sources), site / release, release, "-Q")
        versions.append(release)
    listed = [{"version": name, "pages": pages(site / name)} for name in versions]
    (site / "versions.js").write_text(f"window.VERSIONS = {json.dumps(listed)};\n", encoding="utf-8")
    start = (SETTINGS / "start.html").read_text(encoding="utf-8")
    (site / "index.html").write_text(start.replace("START", f"{present}/{START}"), encoding="utf-8")


def releases(checkout: Path, present: str) -> list[str]:
    """Return the newest release of each minor version before `present`, the newest one first."""
    tags = subprocess.run(["git", "tag", "--merged"], cwd=checkout, capture_output=True, encoding="utf-8", check=True)
    tagged = {numbers(tag[1:]) for tag in tags.stdout.split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)}
    is_released = re.fullmatch(r"[\d.]+", present) is not None
    newest: dict[tuple[int, ...], tuple[int, ...]] = {numbers(present)[:2]: numbers(present)} if is_released else {}
    for release in sorted(tagged, reverse=True):
        if release < numbers(present):
            newest.setdefault(release[:2], release)
    return [".".join(map(str, release)) for release in newest.values() if release != numbers(present)]


def numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)[:3]))


def build(sources: Path, target: Path, name: str, *options: str) -> None:
    """Build the pages of one version."""
    settings: list[str | Path] = ["-c", SETTINGS, "-D", f"release={name}", "-D", f"html_title=Recapture {name}"]
    with tempfile.TemporaryDirectory() as parsed:
        command: list[str | Path] = [sys.executable, "-m", "sphinx", *options, *settings, "-d", parsed, sources, target]
        subprocess.run(command, check=True)


def pages(folder: Path) -> list[str]:
    return sorted(page.relative_to(folder).as_posix() for page in folder.rglob("*.html"))


if __name__ == "__main__":
    try:
        main(ROOT, Path(sys.argv[1]), version.partition("+")[0])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
