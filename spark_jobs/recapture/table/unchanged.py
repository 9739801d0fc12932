"""Keep the files of slices whose rows are unchanged, so that readers of a table see no new version.

A run that read other blobs stages files with other names. If a staged file equals the file that the slice holds, byte
for byte, the new publication names the file that is held.
"""

from collections.abc import Mapping
from dataclasses import replace

from recapture.table.delta import Table
from recapture.table.files import has_same_content
from recapture.table.publications import Entry, Publication
from recapture.table.snapshot import File
from recapture.table.stored import Look


def with_kept_files(
    publications: Mapping[str, Publication], before: Mapping[str, Entry], tables: Mapping[str, Table], look: Look
) -> dict[str, Publication]:
    """Return the publications, with the files that the slices hold already in place of equal ones.

    `before` has the entries of the same slices, by slice_start, and `tables` are those of the files, by name. A held
    file that is gone or damaged is not kept: the staged one replaces it.
    """
    equal: dict[str, dict[str, File]] = {name: {} for name in tables}
    for start, publication in publications.items():
        for name, staged in publication.files.items():
            held = before[start].file(name)
            if staged is not None and held is not None and held.path != staged.path and is_equal(held, staged):
                equal[name][start] = held
    intact = {name: look.intact(tables[name].url, files) for name, files in equal.items() if files}
    return {
        start: replace(
            publication,
            files=dict(publication.files) | {name: files[start] for name, files in intact.items() if start in files},
        )
        for start, publication in publications.items()
    }


def is_equal(file: File, other: File) -> bool:
    """Return whether two files of a slice have the same bytes, by their sizes and the digests in their names."""
    return (file.size, file.rows) == (other.size, other.rows) and has_same_content(file.path, other.path)
