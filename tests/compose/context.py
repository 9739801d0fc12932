"""Which files Docker sends to a build, and which instructions a Dockerfile has."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Step:
    """An instruction of a Dockerfile."""

    instruction: str
    options: tuple[str, ...]
    """Options such as --from=packages."""
    arguments: str


def steps(dockerfile: str) -> list[Step]:
    """Return the instructions of a Dockerfile, without comments and with their lines joined."""
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    found = []
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if line.strip():
            instruction, *words = line.split(" ")
            rest = " ".join(words)
            options = re.match(r"(?:--\S+\s+)*", rest)
            assert options is not None
            found.append(Step(instruction, tuple(options[0].split()), rest[options.end() :]))
    return found


def is_sent(path: str, dockerignore: str) -> bool:
    """Return whether Docker sends a file: the last pattern that matches it, or a folder that it is in, decides."""
    sent = True
    for line in dockerignore.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        excepted = pattern.startswith("!")
        if _matches(path, pattern.removeprefix("!").strip("/")):
            sent = excepted
    return sent


def _matches(path: str, pattern: str) -> bool:
    expression = re.compile(
        "".join({"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in _parts(pattern))
    )
    parents = [str(parent) for parent in PurePosixPath(path).parents if str(parent) != "."]
    return any(expression.fullmatch(name) for name in (path, *parents))


def _parts(pattern: str) -> list[str]:
    return [part for part in re.split(r"(\*\*/|\*|\?)", pattern) if part]
