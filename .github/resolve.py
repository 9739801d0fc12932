"""Resolve setup.cfg with other versions than requirements.lock has: `python .github/resolve.py LOCK pyspark==4.3.0`.

The other packages keep the versions of requirements.lock where they can. `make versions` tests with such a lock.

* `pyspark==VERSION` leaves out pyspark-client, which does not exist in every version of pyspark.
* `apache-airflow==VERSION` gives what Airflow requires the versions that were the newest when Airflow was released.
* `lowest` gives the packages that setup.cfg names for the core and the extra quality the lowest allowed versions.
  Airflow is left out, unless its version is given: then its providers have the lowest versions, too.
"""

import argparse
import configparser
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = (sys.executable, "-m", "uv", "--no-config", "--quiet")
COMPILE = (*UV, "pip", "compile", "--universal", "--python-version", "3.11")
AIRFLOW = {"3.1.8": "2026-03-12", "3.2.2": "2026-05-30"}
"""Older versions of Airflow that are supported, each with the day after its release."""
AIRFLOW_EXTRAS = frozenset({"airflow", "databricks", "livy", "openlineage"})
"""Extras that require Airflow."""
FLOORS = AIRFLOW_EXTRAS | {"quality"}
"""Extras whose lowest versions are tested. The others are tools for the tests."""
OLDER = "python_full_version < '3.14' and platform_python_implementation == 'CPython'"
"""Marker of the Pythons that old versions of packages are for: on others, some packages need newer ones."""
PIN = re.compile(r"^([\w.-]+)==[^\\\n]*[^\\\s]", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python .github/resolve.py")
    parser.add_argument("lock", type=Path, help="the file to write")
    parser.add_argument("versions", nargs="+", help="pyspark==VERSION, apache-airflow==VERSION or lowest")
    arguments = parser.parse_args()
    versions = [version for version in arguments.versions if version != "lowest"]
    lowest = "lowest" in arguments.versions
    extras = frozenset(_setup()["options.extras_require"])
    if lowest and not any(version.startswith("apache-airflow==") for version in versions):
        extras -= AIRFLOW_EXTRAS
    arguments.lock.parent.mkdir(parents=True, exist_ok=True)
    resolve(arguments.lock, versions, extras, "--generate-hashes", lowest=lowest)


def resolve(lock: Path, versions: Iterable[str], extras: Collection[str], *flags: str, lowest: bool = False) -> None:
    """Write a lock of the core and these extras with versions such as `pyspark==4.3.0`; the flags are those of uv."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        chosen = [flag for version in versions for flag in _flags(version, scratch)]
        if lowest:
            floors = _lowest(FLOORS.intersection(extras), chosen, scratch)
            chosen += ["--constraints", _file(scratch / "lowest.txt", floors)]
        shutil.copyfile(ROOT / "requirements.lock", lock)  # uv keeps these versions where it can
        _compile(lock, ROOT / "setup.cfg", *_extras(extras), *chosen, *flags)


def pins(lock: Path) -> list[tuple[str, str]]:
    """Return the name and the pin of each package of a lock, without hashes and comments."""
    return [(match[1], match[0]) for match in PIN.finditer(lock.read_text(encoding="utf-8"))]


def _flags(version: str, scratch: Path) -> list[str | Path]:
    """Return the flags of uv for one version."""
    name, _, number = version.partition("==")
    if name == "pyspark":
        override = _file(scratch / "override.txt", [f"pyspark[connect]=={number}"])
        return ["--overrides", override, "--excludes", _file(scratch / "exclude.txt", ["pyspark-client"])]
    lines = [version]
    if number in AIRFLOW:
        required = _file(scratch / "airflow.in", [version])
        _compile(lock := scratch / "airflow.lock", required, "--exclude-newer", AIRFLOW[number])
        # Providers are released for several versions of Airflow. Recapture may need newer ones.
        lines += _older(pin for name, pin in pins(lock) if not name.startswith("apache-airflow-providers-"))
    return ["--constraints", _file(scratch / f"{name}.txt", lines)]


def _lowest(extras: Iterable[str], flags: Sequence[str | Path], scratch: Path) -> list[str]:
    """Return pins of the lowest versions of the packages that setup.cfg names for the core and for these extras."""
    lock = scratch / "lowest.lock"
    _compile(lock, ROOT / "setup.cfg", "--resolution", "lowest-direct", *_extras(extras), *flags)
    setup = _setup()
    named = [setup["options"]["install_requires"], *(setup["options.extras_require"][extra] for extra in extras)]
    names = set(re.findall(r"^[\w.-]+", "\n".join(named), re.MULTILINE))
    return _older(pin for name, pin in pins(lock) if name in names)


def _older(pins: Iterable[str]) -> list[str]:
    """Return pins that hold for the Pythons of OLDER."""
    parts = (pin.partition(" ; ") for pin in pins)
    return [f"{pin} ; {f'({marker}) and ' if marker else ''}{OLDER}" for pin, _, marker in parts]


def _setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def _extras(names: Iterable[str]) -> list[str]:
    return [f"--extra={name}" for name in sorted(names)]


def _file(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _compile(lock: Path, *arguments: str | Path) -> None:
    subprocess.run([*COMPILE, *arguments, "--output-file", lock], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
