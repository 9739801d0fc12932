"""Paths: the checkout, its vectors, and the real Capture files that may be next to it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VECTORS = ROOT / "tests" / "vectors"
"""Published events and results, with their sources in README.md."""
CAPTURE_FILES = ROOT.parent / "shared" / "capture-files"
"""Capture files of real event hubs, which are not part of this repository. Tests that need them skip without them."""
