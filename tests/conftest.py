"""Settings of the whole test run."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

# The usual run finds the same on every machine and day; LSTMSIM_HYPOTHESIS=explore looks for new examples.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
# For `tools/mutate.py`: the first example that fails says enough, and finding the simplest one takes long.
settings.register_profile("first", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile(os.environ.get("LSTMSIM_HYPOTHESIS", "repeatable"))
