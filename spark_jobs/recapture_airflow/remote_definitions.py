"""Pipelines that are defined in a Variable of Airflow, or at an address, instead of in files.

Tasks read pipeline files. Each process that makes the DAGs therefore writes the definitions to files in Airflow's home.
"""

import hashlib
import re
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from airflow.configuration import AIRFLOW_HOME
from airflow.sdk import Variable

from recapture.definition.document import split
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.storage import addresses, open_container

VARIABLE, ADDRESS = "variable", ("https", "http")
"""Schemes of the sources: `variable://NAME` and `https://HOST/PATH`."""
SECONDS = 10
"""Seconds that a server may take to answer."""
MAX_BYTES = 4 * 1024 * 1024
"""Largest size of a document with definitions."""
_PRINTABLE = re.compile(r"[!-~]+")
"""Characters of an address that a request can have as they are."""


def is_remote(source: str) -> bool:
    """Return whether a source is a variable or an address, and not a path."""
    scheme, colon, _ = source.partition("://")
    return bool(colon) and scheme.lower() in (VARIABLE, *ADDRESS)


def stored_definitions(source: str) -> dict[Path, str]:
    """Read the definitions of a source, write each to a file of its own, and return the source as messages name it.

    The lines of the files are those of the source. Raise DefinitionError if the source cannot be read.
    """
    shown, text = _read(source)
    folder = Path(AIRFLOW_HOME) / "recapture" / hashlib.sha256(source.encode()).hexdigest()[:8]
    container, files = open_container(folder.as_uri()), {}
    for key, definition in split(shown, text).items():
        content, name = definition.encode(), f"{key}.yaml"
        if container.read_current(name) != content:
            container.write(name, content)
        files[folder / name] = shown
    return files


def require_addresses(pipeline: Pipeline, shown: str) -> None:
    """Raise DefinitionError if a container or table is a relative path, which has a meaning only in a file."""
    folder = f"{pipeline.file.parent.as_uri()}/"
    containers = (address for section in pipeline.all_inputs for address in addresses(section.container))
    for written in containers, (output.table for output in pipeline.outputs):
        if any(address.startswith(folder) for address in written):
            raise DefinitionError(
                f"{shown}: the pipeline {pipeline.name} has a relative path as container or table: write an address"
            )


def _read(source: str) -> tuple[str, str]:
    """Return the source without its secrets, and its text."""
    scheme, _, name = source.partition("://")
    if scheme.lower() == VARIABLE:
        text = Variable.get(name, default=None)
        if text is None:
            raise DefinitionError(f"{source}: Airflow has no variable {name}: create it, or correct the name")
        return source, str(text)
    shown = _shown(source)
    return shown, _fetched(source, shown)


def _shown(address: str) -> str:
    """Return an address without its signature. Raise DefinitionError if another part of it may hold a secret."""
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError:
        host = None
    if not host or "@" in parts.netloc or not _PRINTABLE.fullmatch(address):
        raise DefinitionError(
            "RecaptureDags has an address that cannot be used: write https://HOST/PATH, without a user, a password or "
            "blanks; a signature may follow as ?QUERY"
        )
    return f"{parts.scheme}://{host}{parts.path}"


def _fetched(source: str, shown: str) -> str:
    try:
        with urlopen(source, timeout=SECONDS) as answer:
            content: bytes = answer.read(MAX_BYTES + 1)
    except HTTPError as error:
        advice = "correct the address, or renew its signature"
        raise DefinitionError(f"{shown}: the server answered {error.code}: {advice}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DefinitionError(f"{shown} cannot be read ({reason}): check that this machine reaches it") from None
    if len(content) > MAX_BYTES:
        raise DefinitionError(f"{shown} is larger than {MAX_BYTES // 1024**2} MiB: split it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{shown} is not UTF-8: save it as UTF-8") from error
