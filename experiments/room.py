"""Has the chip of an experiment room on any FPGA that `lstmsim fit` knows? A sentence for the summaries."""

from __future__ import annotations

import textwrap

import lstmsim

__all__ = ["room_paragraph"]


def room_paragraph(chip: str, rival: str, model: str = "lstm-512") -> list[str]:
    """Say on which devices a preset fits with a model's weights, and that no device of the published machine is known.

    chip: the preset.
    rival: the published machine.
    model: the model whose weights lie on the chip.

    The answer is lines of at most 120 characters.
    """
    counts = lstmsim.fit_summary(lstmsim.fit({"chip": chip, "jobs": [{"model": model, "steps": 1}]}))
    unknown = f"; of {', '.join(name for name, _ in counts.cannot_tell)} nobody can tell" if counts.cannot_tell else ""
    fits = ", ".join(name for name, _ in counts.fits) or "none of the FPGAs that `lstmsim fit` knows"
    text = (
        f"{chip} fits {fits} (with the weights of {model}{unknown}). No device is known of {rival}: compared are "
        "ratios of designs, not chips on one device."
    )
    return textwrap.wrap(text, 120, break_on_hyphens=False)
