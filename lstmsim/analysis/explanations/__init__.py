"""Why a run took as long as it did: its critical path, and what other machines would have made of it."""
