"""The wheel: installed without any extra, an executor orders events with it; with Airflow, it is all that is needed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from recapture import __version__
from tests.paths import ROOT
from tests.worlds import TELEMETRY, World

SOURCES = ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "spark_jobs")
EXTRAS = ("airflow", "embedded", "great_expectations", "httpx", "pandas")
ORDER = """
import importlib.resources, importlib.util, json, pkgutil, sys
from datetime import UTC, datetime
from pathlib import Path

import recapture
from recapture.definition.pipeline import load
from recapture.ordering.order import Reading, order
from recapture.ordering.task import split
from recapture.run.plan import preview
from recapture.tools.sample.__main__ import main
from recapture.storage import open_container

for module in pkgutil.walk_packages(recapture.__path__, "recapture."):
    # These are classes of Great Expectations, which only recapture[quality] installs.
    if not module.name.startswith("recapture.quality.expectations"):
        importlib.import_module(module.name)

main(["archive", "--start", "2026-03-01T10:00:00Z", "--hours", "1"])
pipeline = load(Path("telemetry.yaml"))
manifest = preview(pipeline, datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
[compiled], [planned] = pipeline.query.inputs, manifest.inputs
task = next(split(planned.slices, planned.blobs, 1))
batches, counters = order(
    task,
    open_container(pipeline.section(compiled.alias).container),
    Reading(compiled, pipeline.policies(compiled), pipeline.reader(compiled)),
)
rows = sum(batch.num_rows for batch in batches)
print(json.dumps({
    "extras": [name for name in sys.argv[1:] if importlib.util.find_spec(name)],
    "typed": importlib.resources.files("recapture").joinpath("py.typed").is_file(),
    "rows": rows,
    "events": sum(counted.events for counted in counters.values()),
}))
"""


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return the standard output of a command."""
    completed = subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def uv(home: Path, *arguments: str | Path, **env: str) -> None:
    """Run this environment's uv in a folder, without settings from outside the checkout."""
    run(sys.executable, "-m", "uv", "--quiet", "--no-config", *arguments, cwd=home, **env)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy of its sources."""
    home = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, home)
    build = ("build", "--no-build-isolation", "--python", sys.executable, "--wheel")
    uv(home, *build, SETUPTOOLS_SCM_PRETEND_VERSION=__version__)
    (built,) = (home / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel, and this environment's packages that the wheel requires."""
    home = tmp_path_factory.mktemp("core")
    python = home / "core" / "bin" / "python"
    uv(home, "venv", "--python", sys.executable, "core")
    uv(home, "pip", "install", "--no-deps", "--python", python, wheel)
    (packages,) = home.glob("core/lib/python*/site-packages")
    (recapture,) = metadata.distributions(name="recapture", path=[str(packages)])
    for distribution in required(recapture):
        link(distribution, packages)
    keep_compiled_code(ROOT / "spark_jobs", packages)
    return python


def required(distribution: metadata.Distribution) -> list[metadata.Distribution]:
    """Return the installed distributions that a distribution requires, directly or not, without its extras."""
    found: dict[tuple[str, str], metadata.Distribution] = {}
    todo = [(distribution, "")]
    while todo:
        current, extra = todo.pop()
        for requirement in map(Requirement, current.requires or ()):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            for key in ((requirement.name, of) for of in ("", *requirement.extras)):
                if key not in found:
                    found[key] = metadata.distribution(requirement.name)
                    todo.append((found[key], key[1]))
    return list(found.values())


def link(distribution: metadata.Distribution, packages: Path) -> None:
    """Link the files of an installed distribution, and what Python compiled of them, into another environment."""
    for file in distribution.files or ():
        if ".." in file.parts:
            continue
        source, target = Path(str(file.locate())), packages / file
        files = {source: target}
        if source.suffix == ".py":
            files[Path(cache_from_source(str(source)))] = Path(cache_from_source(str(target)))
        for original, linked in files.items():
            if original.exists() and not linked.exists():
                linked.parent.mkdir(parents=True, exist_ok=True)
                linked.symlink_to(original)


def keep_compiled_code(checkout: Path, packages: Path) -> None:
    """Copy what Numba compiled of a checkout. Numba takes it for that of installed files with the same times."""
    for file in checkout.glob("recapture/**/*"):
        copied = packages / file.relative_to(checkout)
        if file.suffix == ".py":
            shutil.copystat(file, copied)
        elif file.suffix in (".nbc", ".nbi"):
            copied.parent.mkdir(exist_ok=True)
            shutil.copy(file, copied)


def test_the_core_alone_orders_events(core: Path, tmp_path: Path) -> None:
    World(tmp_path).define(inputs=[TELEMETRY | {"container": "archive"}])
    ordered = json.loads(run(core, "-I", "-c", ORDER, *EXTRAS, cwd=tmp_path).splitlines()[-1])
    assert ordered["extras"] == []
    assert ordered["typed"]
    assert ordered["rows"] > 0
    assert ordered["events"] > 0


ELSEWHERE = """
import json, os, sys
from pathlib import Path

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file
from airflow.plugins_manager import get_plugin_info
from airflow.providers_manager import ProvidersManager
import recapture_airflow

bundle = Path(sys.argv[1])
request = DagFileParseRequest(file=str(bundle / "team.py"), bundle_path=bundle, bundle_name="team")
parsed = _parse_file(request, structlog.get_logger())
plugins = [plugin["source"] for plugin in get_plugin_info() if plugin["name"] == "recapture"]
print(json.dumps({
    "from": recapture_airflow.__file__,
    "dags": sorted(dag.data["dag"]["dag_id"] for dag in parsed.serialized_dags),
    "errors": parsed.import_errors,
    "plugins": [str(source).partition(": EntryPoint")[0] for source in plugins],
    "provider": ProvidersManager().providers["recapture"].version,
}), file=answers)
"""
"""Program of an Airflow that shares nothing with the checkout: prints what it finds, and the DAGs of a bundle."""


@pytest.fixture
def elsewhere(wheel: Path, tmp_path: Path) -> Path:
    """The Python of an environment that holds the wheel, and all of this environment's packages but the checkout."""
    python = tmp_path / "elsewhere" / "bin" / "python"
    uv(tmp_path, "venv", "--python", sys.executable, "elsewhere")
    (packages,) = tmp_path.glob("elsewhere/lib/python*/site-packages")
    uv(tmp_path, "pip", "install", "--no-index", "--no-deps", "--python", python, wheel)
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def test_an_airflow_elsewhere_needs_the_wheel_and_two_lines(elsewhere: Path, tmp_path: Path) -> None:
    bundle, home = tmp_path / "bundle", tmp_path / "home"
    World(bundle / "pipelines").define()
    (bundle / "team.py").write_text('from recapture_airflow import RecaptureDags\n\nRecaptureDags("pipelines")\n')
    env = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "PYTHONPATH": ""}
    env["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"] = "300"
    env["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(home / "no-plugins")
    found = json.loads(run(elsewhere, "-I", "-c", ELSEWHERE, bundle, cwd=tmp_path, **env))
    assert found["errors"] == {}
    assert found["dags"] == sorted(f"telemetry{dag}" for dag in ("", ".check", ".rollback", ".update"))
    package = Path(found["from"]).parent
    assert package.is_relative_to(tmp_path / "elsewhere")
    assert (package / "application" / "backfill.py").is_file()
    assert found["plugins"] == [f"recapture=={__version__}"], "an entry point of the wheel, once"
    assert found["provider"] == __version__
