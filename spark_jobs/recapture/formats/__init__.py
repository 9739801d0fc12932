"""The input formats: what blobs are called, and what they hold."""

import os

# DataFusion's allocator gives memory back when it is freed, instead of keeping as much as a blob's block holds.
os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "0")
