"""The index of an input: on which keys the tasks of a run note the values of each blob's events."""

from recapture import __version__
from recapture.archive.definitions import digest_of
from recapture.definition.digest import run_definition
from recapture.definition.key_names import event_key
from recapture.definition.pipeline import Pipeline
from recapture.formats.event_keys import Index
from recapture.query.model import CompiledInput


def index_of(pipeline: Pipeline, compiled: CompiledInput) -> Index | None:
    """Return the index of an input; None if it has none.

    Notes have the times of events that are not malformed, after the policies. So the digest covers what decides both,
    and the version of Recapture.
    """
    section = pipeline.section(compiled.alias)
    if not section.index:
        return None
    keys = tuple(event_key(name, section.metadata) for name in section.index)
    definition = next(candidate for candidate in run_definition(pipeline).inputs if candidate.alias == compiled.alias)
    names = [key.name for key in keys]
    read = (compiled.timestamp_by, compiled.over, compiled.body_columns, compiled.columns_to_check)
    return Index(keys, digest_of([__version__, names, definition.digest_content, repr(read)]))
