"""The archive of a bundle: `packages/`, and `bin/python`, which starts the executor's own Python with them."""

import os
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from isal import igzip

from recapture.errors import DefinitionError
from recapture.tools.bundle import packages
from recapture.tools.bundle.compiled import compile_packages, numba_environment
from recapture.tools.bundle.target import Target, here

_TIME = 946_684_800
"""Time of all files, in seconds since 1970. Numba looks at it, and Spark's unpacking keeps it."""
_LAUNCHER = """\
#!/bin/sh
# Starts the executor's own Python with the packages of this bundle.
refuse() {{ echo "recapture-bundle: $1" >&2; exit 1; }}
home=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
machine=$(uname -s -m)
[ "$machine" = "Linux {machine}" ] || refuse "the bundle is for Linux {machine}, and an executor runs on $machine: \
make a bundle with --platform"
for python in python{version} python3 python; do
    has=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    if [ "$has" = {version} ]; then
        export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$home/packages"{variables}
        exec "$python" "$@"
    fi
done
refuse "the bundle is for Python {version}, and an executor has none in its PATH: install it there, or make a bundle \
with --python for the version that executors have"
"""


@dataclass(frozen=True)
class Bundle:
    """A bundle that was made."""

    file: Path
    target: Target
    size: int
    """Size of the archive, in bytes."""
    unpacked: int
    """Size of what is in it, in bytes."""
    is_compiled: bool
    """Whether it holds compiled code. Without it, each executor compiles what it needs."""


def make(file: Path, target: Target) -> Bundle:
    """Write the bundle for a target to a file, and replace one that is there."""
    if not file.name.endswith(".tar.gz"):
        raise DefinitionError(f"{file}: Spark unpacks archives by their names: give it a name that ends with .tar.gz")
    if not file.absolute().parent.is_dir():
        raise DefinitionError(f"{file.absolute().parent}: no such folder: create it first")
    is_compiled = target == here()
    with tempfile.TemporaryDirectory(prefix="recapture-bundle-") as scratch:
        folder = Path(scratch) / "bundle"
        packages.install(target, packages.required(), folder / "packages", Path(scratch))
        for source in folder.rglob("*.py"):
            os.utime(source, (_TIME, _TIME))
        if is_compiled:
            compile_packages(folder / "packages", target.machine)
        launcher = folder / "bin" / "python"
        launcher.parent.mkdir()
        launcher.write_text(_launcher(target, is_compiled=is_compiled))
        launcher.chmod(0o755)
        written = file.with_name(f"{file.name}.part")
        with igzip.IGzipFile(written, "wb", 3) as compressed:  # type: ignore[no-untyped-call]
            _write(folder, compressed)
        os.replace(written, file)
        unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Bundle(file, target, file.stat().st_size, unpacked, is_compiled)


def _launcher(target: Target, *, is_compiled: bool) -> str:
    variables = numba_environment(target.machine) if is_compiled else {}
    assignments = "".join(f" {name}={value}" for name, value in variables.items())
    return _LAUNCHER.format(machine=target.machine, version=target.python, variables=assignments)


def _write(folder: Path, stream: igzip.IGzipFile) -> None:
    """Write the files of a folder as a tar archive, in order, owned by whoever unpacks them."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = _TIME
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False, filter=owned)
