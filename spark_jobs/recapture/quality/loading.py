"""Load Great Expectations without the slow packages that audits seldom need, or never."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recapture.process.startup import hidden, loaded_on_use
from recapture.quality.suites import require_installed

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

SLOW = ("altair", "scipy.stats")
"""Packages that take a third of the import. Only the expectations about distributions use them."""
UNUSED = ("pyspark", "sqlalchemy", "azure")
"""Packages that take half of the rest. Great Expectations does without them, as an audit has its rows in pandas."""


def load_great_expectations() -> None:
    """Import Great Expectations, which takes 1 to 4 s the first time. Raise DefinitionError unless it is installed."""
    require_installed()
    with loaded_on_use(SLOW), hidden(UNUSED):
        import great_expectations  # noqa: F401, the import registers the expectations


def create_context(sites: Mapping[str, Any] | None = None) -> EphemeralDataContext:
    """Return a context in memory, without usage reports and progress bars. `sites` are its Data Docs, by name."""
    load_great_expectations()
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        data_docs_sites=dict(sites or {}),
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    return gx.get_context(project_config=config, mode="ephemeral")
