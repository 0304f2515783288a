"""The executor: which steps each thread does, and what they compute."""
