"""YAML is read as version 1.1, and a scalar that could be read in two ways is refused."""

import contextlib
import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.document import read
from recapture.errors import DefinitionError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.yaml"


def value(file: Path, text: str) -> Any:
    file.write_text(text)
    return read(file).values["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on", True),
        ("Off", False),
        ("yes", True),
        ("NO", False),
        ("0600", 384),
        ("08", "08"),
        ("0o17", "0o17"),
        ("12:30", 750),
        ("1:20:30.5", 4830.5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b11", 3),
        ("1.5e+3", 1500.0),
        (".5", 0.5),
        ("~", None),
        ("2026-03-01", datetime.date(2026, 3, 1)),
        ("'on'", "on"),
        ('"0600"', "0600"),
    ],
)
@pytest.mark.parametrize("directive", ["", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n"])
def test_a_plain_scalar_is_read_as_yaml_1_1_whatever_the_file_declares(
    file: Path, directive: str, text: str, expected: object
) -> None:
    read_value = value(file, f"{directive}a: {text}\n")
    assert (read_value, type(read_value)) == (expected, type(expected))


@pytest.mark.parametrize("text", ["y", "Y", "n", "N", "1e5", "1E5", "12e03", "1e+5", "1.5e3", "-1.5E3"])
def test_a_scalar_that_readers_of_yaml_dispute_is_refused(file: Path, text: str) -> None:
    with pytest.raises(DefinitionError, match=r"a\.yaml:2: .* is a string to some YAML parsers, and not to others: "):
        value(file, f"b: 1\na: {text}\n")
    assert value(file, f"a: '{text}'\n") == text


@given(st.text(alphabet="k1: \n-[]{},|>'\"#&*!?%\t\\\x85\u2028<@`."))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(text)
    with contextlib.suppress(DefinitionError):
        read(file)


def test_an_anchor_that_appears_twice_is_refused(file: Path) -> None:
    with pytest.raises(DefinitionError, match=r"a\.yaml:2: the anchor &x appears twice: rename one"):
        value(file, "a: &x 1\nb: &x 2\nc: *x\n")


def test_a_character_that_json_escapes_as_a_surrogate_pair_is_one_character(file: Path) -> None:
    assert value(file, '{"a": "\\ud83d\\ude00"}') == "😀"
    with pytest.raises(DefinitionError, match=r"a\.yaml:1: half of a surrogate pair is no character: "):
        value(file, '{"a": "\\ud83d"}')
