"""`recapture bundle` packs Recapture and its packages for the Python and the processor of executors."""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from recapture import __version__
from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.tools.bundle import Machine, Target, archive, here, make, packages, warm_up
from recapture.tools.bundle.compiled import numba_environment
from tests.commands import FIRST_HOUR, Command
from tests.conftest import Python
from tests.worlds import World

PURE = "py3-none-any"
OTHER = next(machine for machine in Machine if machine != platform.machine())
RUNNING = "{}.{}".format(*sys.version_info[:2])


def write_wheel(folder: Path, name: str, tag: str, requires: str = "") -> None:
    """Write a wheel of a package with one module."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + (
        f"Requires-Dist: {requires}\n" if requires else ""
    )
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"TAG = {tag!r}\n")
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip finds packages. `outer`, which Recapture requires here, requires `native`."""
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index, "outer", PURE, "native")
    monkeypatch.setattr(packages, "required", lambda: ["outer"])
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(index)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return index


def launch(folder: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher of an unpacked bundle with this PATH."""
    command, environment = [str(folder / "bin" / "python"), *arguments], {"PATH": str(path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(here() is None, reason="the bundle's launcher is for Linux")
def test_a_bundle_runs_the_wheels_of_the_target_with_the_python_of_the_executor(
    index: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "here", lambda: None)  # to compile takes half a minute
    machine, out = platform.machine(), tmp_path / "bundle.tar.gz"
    for processor in (machine, OTHER):
        write_wheel(index, "native", f"cp3{sys.version_info[1]}-abi3-manylinux_2_17_{processor}")
    made = command.json("bundle", "--out", out, "--platform", machine)
    assert made.pop("unpacked_bytes") > made.pop("bytes") == out.stat().st_size
    assert made == {"file": str(out), "python": RUNNING, "platform": machine, "compiled": False}

    with tarfile.open(out) as archive_:
        members = archive_.getmembers()
    (folder := tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", out, "-C", folder], check=True)
    assert {(member.uid, member.uname, member.mtime) for member in members} == {(0, "", archive._TIME)}
    assert not [member.name for member in members if "__pycache__" in member.name]

    path = tmp_path / "path"
    path.mkdir()
    for program in ("uname", "dirname"):
        (path / program).symlink_to(str(shutil.which(program)))
    start = f"recapture-bundle: the bundle is for Python {RUNNING}, and an executor has none in its PATH: "
    assert launch(folder, path).stderr.startswith(start)

    (path / "python3").symlink_to(sys.executable)
    script = "import outer, native, recapture; print(outer.__file__, native.TAG, recapture.__version__)"
    ran = launch(folder, path, "-c", script)
    tag = f"cp3{sys.version_info[1]}-abi3-manylinux_2_17_{machine}"
    assert ran.stdout.split() == [f"{folder}/packages/outer.py", tag, __version__], ran.stderr

    (path / "uname").unlink()
    (path / "uname").write_text(f"#!/bin/sh\necho Linux {OTHER}\n")
    (path / "uname").chmod(0o755)
    start = f"recapture-bundle: the bundle is for Linux {machine}, and an executor runs on Linux {OTHER}: "
    refused = launch(folder, path)
    assert (refused.returncode, refused.stdout, refused.stderr.startswith(start)) == (1, "", True)


def test_a_package_without_a_wheel_for_the_target_is_named(index: Path, tmp_path: Path) -> None:
    write_wheel(index, "native", f"cp313-cp313-manylinux_2_28_{OTHER}")
    with pytest.raises(DefinitionError) as error:
        make(tmp_path / "bundle.tar.gz", Target("3.12", OTHER))
    assert str(error.value) == (
        f"native has no wheel for Python 3.12 on Linux {OTHER}: "
        "install a version here that has one, then make the bundle again"
    )
    assert not (tmp_path / "bundle.tar.gz").exists()


def test_a_package_whose_installed_version_has_no_wheel_is_named() -> None:
    """pip names it so if the version is pinned."""
    output = "ERROR: Cannot install numba>=0.6 because these package versions have conflicting dependencies.\n"
    error = packages._error(Target("3.12"), f"{output}ERROR: ResolutionImpossible: for help visit a page\n")
    assert isinstance(error, DefinitionError)
    assert str(error).startswith("numba has no wheel for Python 3.12 on Linux x86_64: install a version here that has")


def test_a_bundle_has_the_requirements_of_the_core_without_spark() -> None:
    names = {Requirement(text).name for text in packages.required()}
    assert {"duckdb", "numba", "pyarrow"} <= names
    assert not names & {"pyspark", "pyspark-client", "great-expectations", "apache-airflow"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--python", "3.10"], "--python 3.10: give a minor version, 3.11 or newer"),
        (["--python", "3.12.1"], "--python 3.12.1: give a minor version, 3.11 or newer"),
        (
            ["--out", "bundle.zip"],
            "bundle.zip: Spark unpacks archives by their names: give it a name that ends with .tar.gz",
        ),
        (["--out", "/no/such/b.tar.gz"], "/no/such: no such folder: create it first"),
    ],
)
def test_what_cannot_become_a_bundle_is_refused(command: Command, arguments: list[str], message: str) -> None:
    assert command.error("bundle", *arguments) == f"recapture: {message}"


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("local[2]", "--bundle is for a cluster, and --master is local[2]: leave out --bundle"),
        ("spark://host:7077", "none.tar.gz: no such file: make it with recapture bundle --out none.tar.gz"),
    ],
)
@pytest.mark.parametrize("name", ["backfill", "update"])
def test_a_bundle_that_no_executor_can_use_is_refused(
    command: Command, tmp_path: Path, name: str, master: str, message: str
) -> None:
    file = World(tmp_path).define().file
    bounds = FIRST_HOUR if name == "backfill" else ()
    assert command.error(name, file, *bounds, "--master", master, "--bundle", "none.tar.gz") == f"recapture: {message}"


@pytest.mark.parametrize("query", warm_up.QUERIES)
def test_the_queries_that_compile_a_bundle_run_what_queries_call(query: str) -> None:
    aliases = [f"o{place}" for place in range(query.count("INTO "))]
    compiled = compile_query(query, inputs={"telemetry": CaptureInput.metadata}, output_aliases=aliases)
    assert len(compiled.outputs) == len(aliases)


MODULE = """
from recapture.process.compilation import compiled

@compiled
def double(number):
    return 2 * number
"""
CALL = "import doubling; doubling.double(21); print(sum(doubling.double.dispatcher.stats.cache_hits.values()))"


@pytest.mark.skipif(here() is None, reason="bundles have compiled code for Linux")
def test_what_numba_compiled_is_found_where_a_bundle_is_unpacked(python: Python, tmp_path: Path) -> None:
    target = here()
    assert target is not None
    hits: list[str] = []
    for folder in (tmp_path / "made", tmp_path / "unpacked"):
        if hits:
            shutil.copytree(tmp_path / "made", folder)
        else:
            folder.mkdir()
            (folder / "doubling.py").write_text(MODULE)
            os.utime(folder / "doubling.py", (archive._TIME, archive._TIME))
        path = os.pathsep.join([str(folder), *sys.path])
        completed = python("-c", CALL, PYTHONPATH=path, **numba_environment(target.machine))
        hits.append(completed.stdout.decode().strip())
    assert hits == ["0", "1"]
