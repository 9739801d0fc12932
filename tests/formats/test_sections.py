"""The sections of the input formats: what each of them has, and what loading them costs a DAG file."""

import subprocess
import sys
from typing import get_args

import pytest

from recapture.formats.base import BLOB_METADATA
from recapture.formats.sections import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_a_section_has_its_own_name_and_the_metadata_of_every_blob(name: str) -> None:
    section = FORMATS[name]
    assert get_args(section.model_fields["format"].annotation) == (name,)
    assert section.metadata.format == name
    assert set(BLOB_METADATA) <= set(section.metadata.known)
    assert set(section.location_keys) <= set(section.model_fields)


def test_sections_load_no_decoder() -> None:
    """A DAG file is parsed every few seconds."""
    code = "import sys, recapture.definition.pipeline; print({*sys.modules} & {'duckdb', 'numba', 'pyspark'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"set()\n"
