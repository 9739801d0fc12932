"""Where the state of a pipeline is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recapture.archive.definitions import RunDefinition
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Schedule
from recapture.run.outdated import parts_of
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.storage import Archive, Container, open_container
from recapture.table.delta import OpenTable, Table


@dataclass(frozen=True)
class Sources:
    """Where the state of a pipeline is read."""

    definition: RunDefinition
    parts: Mapping[str, str]
    """Parts of the definition, as `run.outdated.parts_of`."""
    schedule: Schedule
    length: int
    """Length of a slice, in ticks."""
    containers: Mapping[str, Archive]
    """Containers of the inputs and of reference data, by alias."""
    run_files: Container
    publications: OpenTable
    others: Mapping[str, Table]
    """The other tables, by the names under which a publication lists their files."""
    open: Callable[[Table], OpenTable] = OpenTable

    @property
    def is_never_final(self) -> bool:
        """Whether every later arrival counts, so that no slice can be compared: each would always be stale."""
        policies = (definition.policies for definition in self.definition.inputs)
        return any(policy is not None and policy.late_tolerance is None for policy in policies)


def sources_of(pipeline: Pipeline) -> Sources:
    """Open what the state of a pipeline is read from."""
    tables = tables_of(pipeline)
    return Sources(
        definition=run_definition(pipeline),
        parts=parts_of(pipeline),
        schedule=pipeline.schedule or Schedule(),
        length=slice_length(pipeline),
        containers={section.alias: open_container(section.container) for section in pipeline.all_inputs},
        run_files=open_container(pipeline.outputs[0].table),
        publications=OpenTable(tables.publications),
        others=tables.others,
    )
