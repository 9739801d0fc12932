"""Spark is used only if its packages are whole."""

from importlib import metadata

import pytest

from recapture.errors import DefinitionError
from recapture.execute.spark import installed


@pytest.mark.parametrize(("client", "refused"), [("4.2.0", False), ("4.2.1", True), (None, False)])
def test_pyspark_and_pyspark_client_must_have_one_version(
    monkeypatch: pytest.MonkeyPatch, client: str | None, refused: bool
) -> None:
    """pip writes the files of one package over those of the other, because they have the same names."""

    def version(name: str) -> str:
        number = "4.2.0" if name == "pyspark" else client
        if number is None:
            raise metadata.PackageNotFoundError(name)
        return number

    monkeypatch.setattr(metadata, "version", version)
    if not refused:
        installed.require_one_pyspark()
        return
    with pytest.raises(DefinitionError) as error:
        installed.require_one_pyspark()
    assert str(error.value) == (
        "pyspark is 4.2.0, but pyspark-client is 4.2.1: they have files in common, so install the same version of both"
    )
