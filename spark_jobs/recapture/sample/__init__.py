"""The sample writer: Capture files as Event Hubs writes them, and a world of them, always the same."""

from recapture.sample.capture_file import SampleEvent, capture_file
from recapture.sample.placing import upload_world, write_world
from recapture.sample.world import SampleBlob, world

__all__ = ["SampleBlob", "SampleEvent", "capture_file", "upload_world", "world", "write_world"]
