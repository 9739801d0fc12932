"""The datasets of a pipeline as OpenLineage names and describes them.

Only Airflow's provider for OpenLineage needs this module, which imports its client. No facet contains a value of an
event or of a row. Sources: "Naming Conventions" and "Facets & Extensibility" of OpenLineage.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attr
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    InputDatasetFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    dataset_version_dataset,
    input_statistics_input_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)

from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.formats.reference_data import Reference, ReferenceInput
from recapture.formats.sections import Input
from recapture.model import MetadataColumn, path_name, time_fields
from recapture.quality.audit import Audit
from recapture.query.model import CompiledInput, CompiledReference
from recapture.query.plan.relations import SLICE_START
from recapture.run_files.computed import STAGED, StagedSlice
from recapture.run_files.contents import AUDIT, OUTCOME, PublishedOutput
from recapture.run_files.cost import read_cost
from recapture.run_files.files import RunFiles
from recapture.run_files.planned import files_of
from recapture.storage import addresses
from recapture.storage.address import parse
from recapture_airflow.column_lineage import column_lineage
from recapture_airflow.lineage import Lineage

Name = tuple[str, str]
"""Namespace and name of a dataset."""
_SEVERITIES = {"critical": "error", "warning": "warn"}
"""Severities of OpenLineage; others stay as they are."""


def facets(lineage: Lineage, pipeline: Pipeline, run: str | None) -> OperatorLineage:
    """Return the datasets of a task. Without a run, they have only what the pipeline file says.

    Raise RecaptureError if the run files cannot be read.
    """
    files = None if run is None else files_of(pipeline, run)
    match lineage:
        case Lineage.READS_ARCHIVE:
            return OperatorLineage(inputs=_archive(pipeline, files))
        case Lineage.AUDITS:
            audit = None if files is None else files.read(AUDIT).audit
            return OperatorLineage(inputs=[_table_read(pipeline, output, audit) for output in pipeline.outputs])
        case Lineage.PUBLISHES:
            inputs = _archive(pipeline, files)
            outputs = [_table_written(pipeline, output) for output in pipeline.outputs]
            if files is not None:
                staged, outcome = files.read(STAGED), files.read(OUTCOME)
                for output, published in zip(outputs, outcome.outputs, strict=True):
                    _add_outcome(output, published, staged)
            return OperatorLineage(inputs=inputs, outputs=outputs)
        case Lineage.READS_TABLES:
            return OperatorLineage(inputs=[_table_read(pipeline, output, None) for output in pipeline.outputs])
    rolled_back = [OutputDataset(*dataset_name(output.table)) for output in pipeline.outputs]
    return OperatorLineage(outputs=rolled_back)


def dataset_name(address: str, folder: str = "") -> Name:
    """Return the name of a folder in a container, or of a local one, at an address in any of its forms.

    https://ACCOUNT.blob.core.windows.net/capture/raw => abfss://capture@ACCOUNT.dfs.core.windows.net, raw
    """
    parsed = parse(address)
    if isinstance(parsed, Path):
        return "file", str(parsed / folder)
    endpoint = urlsplit(parsed.endpoint)
    host = (endpoint.netloc + endpoint.path).replace(".blob.", ".dfs.", 1)
    return f"abfss://{parsed.container}@{host}", "/".join(filter(None, (parsed.prefix, folder))) or "/"


def _names_of(section: Input | Reference) -> list[Name]:
    """Return the names of what an input reads: the folder of all blobs, or the one blob of reference data.

    An archive in several containers has one in each.
    """
    prefix = section.names.prefix
    is_blob = isinstance(section, ReferenceInput) and not section.names.timed
    folder = prefix if is_blob else prefix.rpartition("/")[0]
    return [dataset_name(address, folder) for address in addresses(section.container)]


def _archive(pipeline: Pipeline, files: RunFiles | None) -> list[InputDataset]:
    """Return what a run reads: the archive of each input, and reference data."""
    read: list[tuple[Input | Reference, CompiledInput | CompiledReference]] = [
        *((pipeline.section(compiled.alias), compiled) for compiled in pipeline.query.inputs),
        *((pipeline.reference(compiled.alias), compiled) for compiled in pipeline.query.references),
    ]
    datasets = [
        InputDataset(*name, facets={"schema": _read_schema(compiled)})
        for section, compiled in read
        for name in _names_of(section)
    ]
    # The manifest has the blobs of each input, but it may be too large to read it again here.
    cost = None if files is None else read_cost(files)
    if cost is not None and sum(len(_names_of(section)) for section in pipeline.inputs) == 1:
        datasets[0].inputFacets = {
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                fileCount=cost.blobs, size=cost.bytes
            )
        }
    return datasets


def _read_schema(compiled: CompiledInput | CompiledReference) -> schema_dataset.SchemaDatasetFacet:
    """Return the fields and the metadata that a query reads. Without CREATE TABLE, a field has no type of its own."""
    fields, metadata = list(compiled.body_columns), list[MetadataColumn]()
    if isinstance(compiled, CompiledInput):
        fields += time_fields(compiled.timestamp_by)
        read = (compiled.timestamp_by, *compiled.metadata, *compiled.over)
        metadata = [column for column in read if isinstance(column, MetadataColumn)]
    columns: dict[str, str | None] = {
        path_name(column.path): column.type if column.declared else None for column in fields if column.path
    }
    columns |= {column.name[1:]: column.type for column in metadata}
    return schema_dataset.SchemaDatasetFacet(
        [schema_dataset.SchemaDatasetFacetFields(name, type_) for name, type_ in sorted(columns.items())]
    )


def _table_read(pipeline: Pipeline, output: Output, audit: Audit | None) -> InputDataset:
    """Return a table that is audited or read, with the checks that decide whether the run is published into it."""
    own: dict[str, InputDatasetFacet] = {}
    if audit is not None:
        others = {other.alias for other in pipeline.outputs} - {output.alias}
        own["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions=[
                _assertion(
                    assertion=result.expectation,
                    success=result.success,
                    severity=_SEVERITIES.get(result.severity, result.severity),
                    name=f"{result.suite}.{result.expectation}",
                    description=result.title or None,
                )
                for result in audit.results
                if result.proved and result.judged not in others
            ]
        )
    return InputDataset(
        *dataset_name(output.table), facets={"schema": _table_schema(pipeline, output)}, inputFacets=own
    )


def _assertion(**fields: Any) -> data_quality_assertions_dataset.Assertion:
    """Return an assertion. Older versions of the client lack some of the fields: these are left out."""
    known = attr.fields_dict(data_quality_assertions_dataset.Assertion)
    return data_quality_assertions_dataset.Assertion(**{name: fields[name] for name in fields if name in known})


def _table_written(pipeline: Pipeline, output: Output) -> OutputDataset:
    """Return a table that a run is published into, with the lineage of its columns."""
    described = {"schema": _table_schema(pipeline, output), "columnLineage": _column_lineage(pipeline, output)}
    return OutputDataset(*dataset_name(output.table), facets=described)


def _add_outcome(dataset: OutputDataset, published: PublishedOutput, staged: Iterable[StagedSlice]) -> None:
    """Add the version of a table and, if the publication changed it, the size of what was written."""
    if published.version is not None:
        version = dataset_version_dataset.DatasetVersionDatasetFacet(str(published.version))
        dataset.facets = {**(dataset.facets or {}), "version": version}
    if published.changed:
        files = [file for file in staged if file.output == published.alias]
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(file.rows for file in files), size=sum(file.size for file in files), fileCount=len(files)
        )
        dataset.outputFacets = {"outputStatistics": statistics}


def _table_schema(pipeline: Pipeline, output: Output) -> schema_dataset.SchemaDatasetFacet:
    columns = [(column.name, str(column.type)) for column in pipeline.compiled(output).columns]
    columns.append((SLICE_START, "datetime"))
    return schema_dataset.SchemaDatasetFacet([schema_dataset.SchemaDatasetFacetFields(*column) for column in columns])


def _column_lineage(pipeline: Pipeline, output: Output) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    names = {section.alias: _names_of(section) for section in (*pipeline.inputs, *pipeline.references)}
    lineage = column_lineage(pipeline.query, pipeline.compiled(output))
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            column: column_lineage_dataset.Fields(
                [
                    column_lineage_dataset.InputField(*name, source.name)
                    for source in sources
                    for name in names[source.alias]
                ]
            )
            for column, sources in lineage.items()
            if sources
        }
    )
