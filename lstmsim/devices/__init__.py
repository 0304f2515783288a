"""Does a chip fit a device: multipliers, block memories, logic; and the energy of an inference, relative.

`fit.fit` and `energy.energy` compute, `text` writes; the tables of devices are the files in `data/`, read by
`lstmsim.formats.tables.devices_file`.
"""

from __future__ import annotations

__all__: list[str] = []
