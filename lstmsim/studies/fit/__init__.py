"""Does a chip fit a device: multipliers, block memories, logic; and the relative energy of an inference."""

from __future__ import annotations
