"""Requests that keep coming: when they arrive, what their waiting amounts to, and how many a machine can bear."""
