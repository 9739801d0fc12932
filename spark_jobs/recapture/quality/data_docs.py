"""Great Expectations' Data Docs of an audit: its own pages, for those who know them."""

import html
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from recapture.quality.audit import Audit
from recapture.quality.loading import create_context

_SITE = "audit"


def write(audit: Audit, run: str, audited: datetime, folder: Path) -> Path:
    """Write the site of an audit of at least one suite into a folder, and return its first page.

    There is a page for each suite and what it judged. The built-in checks are not expectations of Great Expectations,
    so they are not in it. `audited` is when the audit was written, aware.
    """
    site = {
        "class_name": "SiteBuilder",
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.absolute())},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    context = create_context({_SITE: site})
    import great_expectations as gx
    from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult, RunIdentifier
    from great_expectations.core.expectation_validation_result import expectationValidationResultSchema
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    import recapture.quality.expectations  # noqa: F401, the import registers Recapture's own

    run_id = RunIdentifier(run_name=run, run_time=audited)
    for number, validation in enumerate(audit.validations, 1):
        name = re.sub(r"[^\w-]+", " ", f"{number} {validation.suite_name} {validation.judged}")
        results = [expectationValidationResultSchema.load(_renderable(result)) for result in validation.results]
        succeeded = sum(bool(result.success) for result in results)
        context.suites.add(ExpectationSuite(name=name, expectations=[result.expectation_config for result in results]))
        whole = ExpectationSuiteValidationResult(
            success=succeeded == len(results),
            results=results,
            suite_name=name,
            statistics={
                "evaluated_expectations": len(results),
                "successful_expectations": succeeded,
                "unsuccessful_expectations": len(results) - succeeded,
                "success_percent": succeeded / len(results) * 100,
            },
            suite_parameters=None,
            meta={
                "run_id": run_id,
                "expectation_suite_name": name,
                "great_expectations_version": gx.__version__,
                "batch_spec": {"data_asset_name": validation.judged},
            },
        )
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(name), run_id, validation.judged)
        context.validation_results_store.set(key, whole)
    context.build_data_docs([_SITE])
    return folder / "index.html"


def _renderable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with its texts escaped, because the pages do not escape them, and without the expectation's id.

    The id is the expectation's place in the evaluation; the schema wants a UUID.
    """
    config = {name: value for name, value in result["expectation_config"].items() if name != "id"}
    return {name: _escaped(value) for name, value in {**result, "expectation_config": config}.items()}


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _escaped(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return html.escape(value) if isinstance(value, str) else value
