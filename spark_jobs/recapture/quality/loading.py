"""Load Great Expectations without the slow packages that audits seldom need, or never."""

from recapture.process.startup import hidden, loaded_on_use
from recapture.quality.suites import require_installed

SLOW = ("altair", "scipy.stats")
"""Packages that take a third of the import. Only the expectations about distributions use them."""
UNUSED = ("pyspark", "sqlalchemy", "azure")
"""Packages that take half of the rest. Great Expectations does without them, as an audit has its rows in pandas."""


def load_great_expectations() -> None:
    """Import Great Expectations, which takes 1 to 4 s the first time. Raise DefinitionError unless it is installed."""
    require_installed()
    with loaded_on_use(SLOW), hidden(UNUSED):
        import great_expectations  # noqa: F401, the import registers the expectations
