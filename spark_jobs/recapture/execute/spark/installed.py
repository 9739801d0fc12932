"""The installed packages of Spark."""

from importlib import metadata

from recapture.errors import DefinitionError


def require_one_pyspark() -> None:
    """Raise DefinitionError if pyspark-client is installed in another version than pyspark.

    Both packages have files in common, so that of two versions one is damaged.
    """
    installed = {}
    for name in ("pyspark", "pyspark-client"):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            return
    if len(set(installed.values())) > 1:
        versions = ", but ".join(f"{name} is {version}" for name, version in installed.items())
        raise DefinitionError(f"{versions}: they have files in common, so install the same version of both")
