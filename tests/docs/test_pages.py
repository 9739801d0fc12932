"""The pages are consistent: links lead somewhere, files exist, cited sections exist, and examples are valid."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from recapture.cli import main
from recapture.definition.pipeline import load, load_without_query
from tests.paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"])
SOURCES = sorted(ROOT.glob("spark_jobs/**/*.py")) + sorted(ROOT.glob("plugins/*.py"))
FOLDERS = "docs|spark_jobs|tests|plugins|docker|expectations|benchmarks"


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", read(page), flags=re.DOTALL | re.MULTILINE)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)


def anchor(heading: str) -> str:
    """Return the fragment by which GitHub links to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def examples(page: str) -> list[Any]:
    """Return the YAML blocks of a page."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```", read(ROOT / page), re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(textwrap.dedent(block)) for _, block in blocks]


def load_pipeline(values: dict[str, Any], folder: Path) -> None:
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    load(file)


INPUTS = [example["input"] for example in examples("docs/pipeline.md") if "input" in example]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", prose(page)):
        name, _, fragment = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert not fragment or fragment in map(anchor, headings(file)), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_file_that_a_page_names_exists(page: Path) -> None:
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", prose(page)):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_module_that_a_page_runs_exists(page: Path) -> None:
    for module in re.findall(r"python -m\s+([a-z_.]+\w)", read(page)):
        file = module.replace(".", "/")
        roots = [ROOT / source / file for source in ("", "spark_jobs", "docker")]
        assert any(path.with_suffix(".py").exists() or (path / "__main__.py").exists() for path in roots), module


def test_a_section_of_the_time_model_that_the_code_cites_exists() -> None:
    numbers = {heading.split()[0] for heading in headings(ROOT / "docs" / "time-model.md")}
    cited = {
        (file.name, number)
        for file in SOURCES
        for number in re.findall(r"time[ -]model(?:\.md)?,\s+section\s+(\d(?:\.\d)?)", read(file))
    }
    assert cited
    assert not {(file, number) for file, number in cited if number not in numbers}


def test_the_readme_names_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z][a-z-]*)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert {"plan", "data-docs", "requests"} <= {*commands}
    named = re.findall(r"recapture +([a-z][a-z-]*)", read(ROOT / "README.md"))
    assert [command for command in commands if command not in named] == []


def test_the_readme_links_to_each_page() -> None:
    linked = re.findall(r"^\| \[(docs/[\w-]+\.md)\]", read(ROOT / "README.md"), re.MULTILINE)
    assert sorted(linked) == sorted(f"docs/{page.name}" for page in PAGES if page.parent.name == "docs")


def test_the_pipeline_of_the_readme_is_valid(tmp_path: Path) -> None:
    (values,) = examples("README.md")
    load_pipeline(values, tmp_path)


@pytest.mark.parametrize("section", [section for section in INPUTS if isinstance(section, dict)], ids=str)
def test_an_input_of_the_page_on_pipelines_is_valid(section: dict[str, Any], tmp_path: Path) -> None:
    (pipeline,) = examples("README.md")
    alias = pipeline["input"]["alias"]
    load_pipeline(pipeline | {"input": section | {"alias": alias}}, tmp_path)


@pytest.mark.parametrize("sections", [section for section in INPUTS if isinstance(section, list)], ids=str)
def test_several_inputs_of_the_page_on_pipelines_are_valid(sections: list[dict[str, Any]], tmp_path: Path) -> None:
    (pipeline,) = examples("README.md")
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline | {"input": sections}), encoding="utf-8")
    aliases = [section["alias"] for section in sections]
    assert [section.alias for section in load_without_query(file).all_inputs] == aliases
