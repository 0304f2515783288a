"""Does a chip fit a device: multipliers, block memories, logic; and the energy of an inference, relative.

`fit.fit` and `energy.energy` compute, `text` writes. The tables of devices are the files in `data/`, which
`lstmsim.studies.fit.device` reads.
"""

from __future__ import annotations
