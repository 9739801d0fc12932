"""How Hypothesis draws: the same examples everywhere, or many new ones with HYPOTHESIS_PROFILE=deep.

The default profile, `repeatable`, draws the same examples on every machine and in every run, also in a fresh clone.
`deep` draws ten times as many, at random, and prints how to reproduce a failure.
"""

import os

from hypothesis import settings

USUAL = 100
"""Examples of a test that asks for no number of its own, in the default profile."""

settings.register_profile("repeatable", deadline=None, max_examples=USUAL, derandomize=True, database=None)
settings.register_profile("deep", deadline=None, max_examples=10 * USUAL, derandomize=False, print_blob=True)


def load_profile() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def examples(count: int) -> int:
    """Return `count` in the default profile, and proportionally more in the deep one."""
    return count * settings().max_examples // USUAL
