"""Write the files of a release that follow from requirements.lock: `python .github/release_files.py dist 0.1.0`.

* constraints-airflow-VERSION.txt: the versions of all packages of the core and of the extras airflow and quality.
* recapture-RELEASE-sbom.cdx.json: the same packages, with their hashes, as a bill of materials in CycloneDX's format.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BILL_OF_MATERIALS = "cyclonedx-bom==7.5.0"
"""The tool that writes the bill of materials. It is not needed for anything else, so the lock does not have it."""
UV = (sys.executable, "-m", "uv", "--no-config", "--quiet")


def main(folder: Path, release: str) -> None:
    """Write both files into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        locked = Path(scratch) / "release.lock"
        locked.write_text((ROOT / "requirements.lock").read_text(encoding="utf-8"), encoding="utf-8")
        compile_ = ("pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes")
        extras = ("--extra", "airflow", "--extra", "quality")
        _run(*UV, *compile_, *extras, "--output-file", locked, ROOT / "setup.cfg")
        pins = constraints(locked.read_text(encoding="utf-8"))
        (folder / f"constraints-airflow-{airflow_version(pins)}.txt").write_text(pins, encoding="utf-8")
        bill = folder / f"recapture-{release}-sbom.cdx.json"
        write = ("tool", "run", "--from", BILL_OF_MATERIALS, "cyclonedx-py", "requirements", "--output-reproducible")
        _run(*UV, *write, "--output-file", bill, locked)


def constraints(locked: str) -> str:
    """Return the pins of a lock, one a line, without hashes and comments."""
    return "".join(f"{pin.rstrip()}\n" for pin in re.findall(r"^[\w.-]+==[^\\\n]+", locked, re.MULTILINE))


def airflow_version(pins: str) -> str:
    """Return the version of Airflow in constraints."""
    [version] = re.findall(r"^apache-airflow==(\S+)", pins, re.MULTILINE)
    return str(version)


def _run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
