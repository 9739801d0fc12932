"""How Hypothesis draws: HYPOTHESIS_PROFILE is `repeatable`, `quick` or `deep`.

The default profile, `repeatable`, draws the same examples on every machine and in every run, also in a fresh clone.
`quick` draws a fifth of them. `deep` draws ten times as many, at random, and prints how to reproduce a failure.
"""

import os

from hypothesis import settings

DEFAULT_EXAMPLES = 100
"""Examples that a test draws in the default profile, unless it sets a number."""

settings.register_profile("repeatable", deadline=None, max_examples=DEFAULT_EXAMPLES, derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=DEFAULT_EXAMPLES // 5)
settings.register_profile("deep", deadline=None, max_examples=10 * DEFAULT_EXAMPLES, derandomize=False, print_blob=True)


def load_profile() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def examples(count: int) -> int:
    """Return `count` in the default profile, and proportionally fewer or more in the others; at least one."""
    return max(1, count * settings().max_examples // DEFAULT_EXAMPLES)
