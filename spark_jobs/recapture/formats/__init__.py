"""The input formats, one module per format: its section of the pipeline file, its blob names, and its reader."""

import os

# DataFusion's allocator would otherwise keep as much memory as a blob's largest block needs.
os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "0")
