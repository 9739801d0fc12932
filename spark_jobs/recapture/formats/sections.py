"""The `input` section of a pipeline file, in any format.

To add an input format, write one module next to this one and add its section to the union `Input`. The module defines
three things: the section (a subclass of `BlobInput`, or of `PathInput` for blobs under a path of folders), the names of
the blobs (a `BlobNames`, unless `InputPath` serves), and their reader (a `Reader`, from bytes to `Events`). How bodies
are written is another matter: the reader names their decoder (`body_formats.py`). For example,
`json_lines.py`:

    class JsonInput(BodiesInput):
        metadata: ClassVar[InputMetadata] = InputMetadata("Json", BLOB_METADATA)
        format: Literal["Json"]

        def reader(self, columns: Iterable[InputColumn]) -> Reader:
            return JsonReader(self.limits)

All else follows from the section: which keys are allowed, what a query can read, how blobs are listed, and what the
messages about the pipeline file say. A DAG file loads these modules, so a module imports DuckDB and Numba only
inside the functions that decode.
"""

from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Discriminator, Tag

from recapture.formats.base import BlobInput
from recapture.formats.csv import CsvInput
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.iot_hub import IotHubInput
from recapture.formats.json_lines import JsonInput
from recapture.formats.reference_data import Reference
from recapture.formats.service_bus import ServiceBusInput

DEFAULT_FORMAT = CaptureInput.metadata.format
"""Format of an input that does not say which it has."""


def _with_format(section: Any) -> Any:
    return {"format": DEFAULT_FORMAT} | section if isinstance(section, dict) else section


Input = Annotated[
    CaptureInput | IotHubInput | ServiceBusInput | JsonInput | CsvInput,
    Discriminator("format"),
    BeforeValidator(_with_format),
]
"""An input of events; its key `format` decides which section it is."""


def _type(section: Any) -> str:
    return str(section.get("type", "Stream")) if isinstance(section, dict) else "Stream"


AnyInput = Annotated[Annotated[Input, Tag("Stream")] | Annotated[Reference, Tag("Reference")], Discriminator(_type)]
"""An input of events, or reference data; its key `type` decides which."""

FORMATS: dict[str, type[BlobInput]] = {section.metadata.format: section for section in get_args(get_args(Input)[0])}
"""The section of each format, by the format's name."""


def formats_with(key: str) -> list[str]:
    """Return the formats whose inputs have a key."""
    return [name for name, section in FORMATS.items() if key in section.model_fields]
