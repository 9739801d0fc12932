"""Write the files of a release that follow from requirements.lock: `python .github/release_files.py dist 0.1.0`.

* constraints-airflow-VERSION.txt: the versions of all packages of the core and of the extras airflow and quality, for
  the version of Airflow in the lock and for each older version that is supported.
* recapture-RELEASE-sbom.cdx.json: the packages with the version of Airflow in the lock, with their hashes, as a bill of
  materials in CycloneDX's format.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from resolve import AIRFLOW, ROOT, UV, pins, resolve

BILL_OF_MATERIALS = "cyclonedx-bom==7.5.0"
"""The tool that writes the bill of materials. It is not needed for anything else, so the lock does not have it."""
EXTRAS = ("airflow", "quality")


def main(folder: Path, release: str) -> None:
    """Write the files into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        lock = Path(scratch) / "release.lock"
        for version in AIRFLOW:
            resolve(lock, [f"apache-airflow=={version}"], EXTRAS)
            _write_constraints(folder, lock)
        resolve(lock, [], EXTRAS, "--generate-hashes")
        _write_constraints(folder, lock)
        bill = folder / f"recapture-{release}-sbom.cdx.json"
        write = ("tool", "run", "--from", BILL_OF_MATERIALS, "cyclonedx-py", "requirements", "--output-reproducible")
        subprocess.run([*UV, *write, "--output-file", bill, lock], cwd=ROOT, check=True)


def constraints(lock: Path) -> tuple[str, str]:
    """Return the name of the constraints that have the pins of a lock, one a line, and their text."""
    [airflow] = [pin.partition("==")[2] for name, pin in pins(lock) if name == "apache-airflow"]
    return f"constraints-airflow-{airflow}.txt", "".join(f"{pin}\n" for _, pin in pins(lock))


def _write_constraints(folder: Path, lock: Path) -> None:
    name, text = constraints(lock)
    (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
