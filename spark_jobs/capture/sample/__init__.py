"""The sample writer: Capture files as Event Hubs writes them, and a world of them, always the same."""

from spark_jobs.capture.sample.capture_file import SampleEvent, capture_file
from spark_jobs.capture.sample.placing import upload_world, write_world
from spark_jobs.capture.sample.world import SampleBlob, world

__all__ = ["SampleBlob", "SampleEvent", "capture_file", "upload_world", "world", "write_world"]
