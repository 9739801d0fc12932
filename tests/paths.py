"""Where things are: the checkout, and the real files and vectors that may lie next to it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CAPTURE_FILES = SHARED / "capture-files"
VECTORS = SHARED / "vectors"
