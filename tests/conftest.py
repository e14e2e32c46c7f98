import os

from hypothesis import Phase, settings

# Timings on shared machines say nothing, and a failure in CI must be repeatable:
# random search belongs to HYPOTHESIS_PROFILE=thorough.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=100)
# To look at a failure without waiting for a smaller one.
settings.register_profile(
    "plain", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
