"""How Hypothesis draws: HYPOTHESIS_PROFILE is `repeatable`, `quick` or `deep`.

A test asks for some examples, or for 100. The default profile, `repeatable`, draws a quarter of them, the same on
every machine and in every run, also in a fresh clone. `quick` draws a tenth. `deep` draws ten times as many as a test
asks for, at random, and prints how to reproduce a failure. It also shrinks the failures of slow tests.
"""

import os

from hypothesis import HealthCheck, Phase, settings

USUAL_EXAMPLES = 100
"""Examples that a test asks for, unless it sets a number."""

SLOW_EXAMPLES = (HealthCheck.too_slow, HealthCheck.data_too_large)
"""Health checks that a test with large examples does not have to pass."""

settings.register_profile(
    "repeatable",
    deadline=None,
    max_examples=USUAL_EXAMPLES // 4,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a test must not fail because the machine is busy
)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=USUAL_EXAMPLES // 10)
settings.register_profile("deep", deadline=None, max_examples=10 * USUAL_EXAMPLES, derandomize=False, print_blob=True)


def load_profile() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def examples(count: int) -> int:
    """Return the share of `count` examples that the profile draws; at least one."""
    return max(1, count * settings().max_examples // USUAL_EXAMPLES)


def slow(count: int) -> settings:
    """Return the settings of a test whose examples take seconds each: `examples(count)`, shrunk in `deep` only."""
    phases = list(Phase) if settings.get_current_profile_name() == "deep" else [Phase.explicit, Phase.generate]
    return settings(max_examples=examples(count), phases=phases, suppress_health_check=SLOW_EXAMPLES)
