"""An ASA job: what both of its written forms, the project and the ARM template, say. It holds no credential.

A text may hold `${NAME}`: a value that an ARM template leaves open.
"""

import re
from dataclasses import dataclass

HOLE = re.compile(r"\$\{(\w+)\}")
"""What stands for an open value; a pipeline file reads it as an environment variable."""


@dataclass(frozen=True)
class EventHub:
    """An event hub, by the names of its namespace and its own; None where the job's are none."""

    namespace: str | None
    name: str | None


@dataclass(frozen=True)
class BlobFolder:
    """A container and a folder of blobs in it; None where the job's names are none."""

    account: str | None
    container: str | None
    folders: tuple[str, ...]
    """What all blobs' names begin with: the pattern's folders before its first {…}."""


@dataclass(frozen=True)
class BlobPath:
    """Where the blobs of a Blob input lie; texts are empty where the job has none, None where they are not readable."""

    pattern: str | None
    date_format: str | None
    time_format: str | None


@dataclass(frozen=True)
class JobInput:
    """One input."""

    alias: str
    where: str
    """The file that defines it and, in a template, the resource."""
    kind: str
    """`Event Hub`, `IoT Hub`, `Blob storage`, or the name that the job's file has for it."""
    reference: bool
    source: EventHub | BlobFolder | None
    """None where no Capture can be behind it."""
    serialization: str
    """`Json`, `Avro`, `Csv`, … in this letter case."""
    compression: str
    """`None`, `GZip` or `Deflate`."""
    path: BlobPath | None = None
    """Of a Blob input."""
    delimiter: str | None = None
    """Of CSV."""


@dataclass(frozen=True)
class JobOutput:
    """One output."""

    alias: str
    where: str
    kind: str
    target: BlobFolder | None
    """None where rows do not go to storage."""
    serialization: str
    has_watermark_settings: bool


@dataclass(frozen=True)
class JobFunction:
    """One user-defined function."""

    name: str
    where: str
    language: str
    """`JavaScript`, `C#`, `machine learning`, or the name that the job's file has for it."""


@dataclass(frozen=True)
class JobSettings:
    """The settings of a job; None where it does not say. A text in place of a number is an open value."""

    where: str
    out_of_order_policy: str | None = None
    """`Adjust` or `Drop`."""
    out_of_order_seconds: int | str | None = None
    late_seconds: int | str | None = None
    output_error_policy: str | None = None
    """`Stop` or `Drop`."""
    compatibility_level: str | None = None
    data_locale: str | None = None


@dataclass(frozen=True)
class AsaJob:
    """One job. `query` has \\n at its lines' ends."""

    name: str
    origin: str
    """The file or folder that it was read from."""
    query: str
    query_where: str
    settings: JobSettings
    inputs: tuple[JobInput, ...]
    outputs: tuple[JobOutput, ...]
    functions: tuple[JobFunction, ...]
    unread: tuple[str, ...]
    """The files or resources of the job that are of no known kind."""
