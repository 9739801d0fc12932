"""Stand-ins for the two images of other projects: the same programs, from the packages that the tests use."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from embedded.node import AZURITE, node
from embedded.postgres import COPIED, INSTALLATION, PACKAGE
from tests.compose.image import Image

NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""Files of this machine that pip and apt need to reach their servers. They are copied, so that no step changes them."""
DATABASE_USER = 70
AZURITE_SCRIPT = """#!/bin/sh
exec /opt/bin/node /opt/azurite/node_modules/azurite/dist/src/blob/main.js "$@"
"""
POSTGRES_SCRIPT = f"""#!/bin/sh
# As the image does: create the cluster and the database if there is none, and become the user of the database.
set -e
data=/var/lib/postgresql/18/docker
become="setpriv --reuid {DATABASE_USER} --regid {DATABASE_USER} --clear-groups"
if [ ! -e $data/PG_VERSION ]; then
    mkdir -p $data
    chown {DATABASE_USER} $data
    cat "$POSTGRES_PASSWORD_FILE" > /tmp/password
    chown {DATABASE_USER} /tmp/password
    $become initdb --pgdata $data --username "$POSTGRES_USER" --pwfile /tmp/password --encoding UTF8 \
        --auth-local trust --auth-host scram-sha-256 --no-sync
    rm /tmp/password
    echo "CREATE DATABASE $POSTGRES_DB" | $become postgres --single -D $data postgres
fi
program=$1
shift
exec $become "$program" -D $data -c unix_socket_directories=/tmp "$@"
"""


def azurite(base: Path, folder: Path) -> Image:
    """Return an image with the storage emulator and Node."""
    root = folder / "azurite"
    if not (root / "opt" / "bin" / "azurite-blob").exists():
        _copy(AZURITE / "node_modules", root / "opt" / "azurite" / "node_modules")
        (root / "opt" / "bin").mkdir(exist_ok=True)
        shutil.copy(node(), root / "opt" / "bin" / "node")
        _script(root / "opt" / "bin" / "azurite-blob", AZURITE_SCRIPT)
    return Image(root, {"PATH": "/opt/bin:/usr/bin:/bin"}, below=base)


def postgres(base: Path, folder: Path) -> Image:
    """Return an image with PostgreSQL 18."""
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    root, package = folder / "postgres", Path(spec.origin).parent
    if not (root / "docker-entrypoint").exists():
        for part in COPIED:
            _copy(package / INSTALLATION / part, root / "opt" / PACKAGE / INSTALLATION / part)
        libraries = package.with_name(f"{PACKAGE}.libs")
        if libraries.is_dir():
            _copy(libraries, root / "opt" / libraries.name)
        (root / "etc").mkdir(exist_ok=True)
        users = (base / "etc" / "passwd").read_text()
        (root / "etc" / "passwd").write_text(f"{users}postgres:x:{DATABASE_USER}:{DATABASE_USER}::/tmp:/bin/sh\n")
        _script(root / "docker-entrypoint", POSTGRES_SCRIPT)
    path = f"/opt/{PACKAGE}/{INSTALLATION}/bin:/usr/bin:/bin"
    return Image(root, {"PATH": path, "LC_ALL": "C"}, entrypoint=("/docker-entrypoint",), below=base)


def base(folder: Path) -> Path:
    """Make a Debian 12 with Python 3.11, which stands in for the image of Python, and return its folder."""
    included = "--include=ca-certificates,python3-pip,python3-venv"
    subprocess.run(["debootstrap", "--variant=minbase", included, "bookworm", str(folder)], check=True)
    for name in filter(os.path.exists, NETWORK_FILES):
        shutil.copyfile(name, folder / name.lstrip("/"))
    for marker in folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    (folder / "usr" / "local" / "bin" / "python").symlink_to("/usr/bin/python3")
    return folder


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def _script(path: Path, content: str) -> None:
    path.write_text(content)
    path.chmod(0o755)
