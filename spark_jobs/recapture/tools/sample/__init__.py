"""The sample writer: Capture files as Event Hubs writes them, and a world of them, always the same."""

from recapture.tools.sample.capture_file import SampleEvent, capture_file
from recapture.tools.sample.placing import upload_world, write_world
from recapture.tools.sample.world import SampleBlob, world

__all__ = ["SampleBlob", "SampleEvent", "capture_file", "upload_world", "world", "write_world"]
