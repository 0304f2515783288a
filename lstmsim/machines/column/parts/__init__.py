"""What a core of the column-wise NPU is built of, part for part: the formulas of its generated hardware.

`lstmsim fit` counts with them, `lstmsim rtl --synth` compares them with what a synthesis program counts.
"""

from __future__ import annotations

__all__: list[str] = []
