"""The content of an ASA job that a project and an ARM template have in common. It has no credentials.

A text may contain `${NAME}`: a value that an ARM template leaves open.
"""

from dataclasses import dataclass, field

from recapture.tools.asa_job.capture import Captures
from recapture.tools.asa_job.documents import SettingsPart
from recapture.tools.asa_job.draft import Finding


@dataclass(frozen=True)
class EventHub:
    """Names of a namespace and an event hub; None where the job has no valid name."""

    namespace: str | None
    name: str | None


@dataclass(frozen=True)
class BlobFolder:
    """Container and the folders in it; None where the job has no valid name."""

    account: str | None
    container: str | None
    folders: tuple[str, ...]
    """Folders that every blob name starts with: those of the path pattern before its first {…}."""
    suffix: str = "core.windows.net"
    """End of the host of storage accounts in the cloud of the job."""

    @property
    def url(self) -> str | None:
        """Url of the container; None if its account or its name is not known."""
        if self.account is None or self.container is None:
            return None
        return f"https://{self.account}.blob.{self.suffix}/{self.container}"


@dataclass(frozen=True)
class BlobPath:
    """Path of the blobs of a Blob input. A text is empty if the job has none, and None if it is not valid."""

    pattern: str | None
    date_format: str | None
    time_format: str | None
    has_deltas: bool = False
    """Whether other blobs hold changes of the rows, as reference data may have them."""


@dataclass(frozen=True)
class JobInput:
    """Input of the job."""

    alias: str
    where: str
    """File that defines the input and, in a template, the resource."""
    kind: str
    """Kind of source: `Event Hub`, `IoT Hub`, `Blob storage`, or the name in the job's file."""
    reference: bool
    source: EventHub | BlobFolder | None
    """Source; None if it is neither an event hub nor Blob storage."""
    serialization: str
    """Serialization: `Json`, `Avro`, `Csv`, … in this case."""
    compression: str
    """Compression: `None`, `GZip` or `Deflate`."""
    path: BlobPath | None = None
    """Path of a Blob input; None for other inputs."""
    delimiter: str | None = None
    """Field delimiter of CSV."""
    problem: str | None = None
    """Reason why its file does not define it, such as "its file does not exist"; None if it does."""


@dataclass(frozen=True)
class JobOutput:
    """Output of the job."""

    alias: str
    where: str
    kind: str
    target: BlobFolder | None
    """Target of the rows; None if they do not go to Blob storage."""
    serialization: str
    has_watermark_settings: bool
    problem: str | None = None
    table: str | None = None
    """Url of a table next to the one into which the live job writes; None if it does not write into a table."""


@dataclass(frozen=True)
class JobFunction:
    """User-defined function of the job."""

    name: str
    where: str
    language: str
    """Language: `JavaScript`, `C#`, `machine learning`, or the name in the job's file."""
    is_aggregate: bool = False
    script: str | None = None
    """Text of the script; None if the job has none, or it cannot be read."""
    output_type: str = "any"
    """Type of what it returns, as a pipeline file writes it."""
    argument_types: tuple[str, ...] = ()
    """Types of its arguments, as a pipeline file writes them."""
    problem: str | None = None


@dataclass(frozen=True)
class AsaJob:
    """ASA job. The lines of `query` end with \\n."""

    name: str
    origin: str
    """Name of the file that the job was read from."""
    query: str
    query_where: str
    settings: SettingsPart
    settings_where: str
    """File that has the settings or, if it does not exist, that would have them."""
    settings_exist: bool
    inputs: tuple[JobInput, ...]
    outputs: tuple[JobOutput, ...]
    functions: tuple[JobFunction, ...]
    unread: tuple[str, ...]
    """Files or resources of the job whose kind is unknown."""
    captures: Captures = field(default_factory=Captures)
    """Where Capture writes, as resources next to the job say."""
    missing: tuple[Finding, ...] = ()
    """Findings about the query, to resolve before the pipeline runs as the job did."""
    different: tuple[Finding, ...] = ()
    """Findings about what differs slightly from the job."""
    region: str = ""
    """Region of the job as its file writes it; `${NAME}` or empty if the file does not say it."""
