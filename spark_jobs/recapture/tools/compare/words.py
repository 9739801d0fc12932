"""The reasons of differences that need no other run."""

DUPLICATES = "duplicates"
"""The live job wrote a row more than once."""
DIGITS = "last digits"
"""Floats differ in their last digits only, because they were added in another order."""
HOLE = "hole in the archive"
"""The archive lacks events of the slice."""
UNEXPLAINED = "unexplained"
