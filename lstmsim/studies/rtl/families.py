"""Families of FPGAs that Yosys knows: which command maps to one, and what its cells take of a device.

A resource is counted in the unit of the device's table, so that it can stand beside the numbers of `lstmsim fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show

__all__ = ["FAMILIES", "RESOURCES", "Family", "family_of"]

#: What is counted, in the order of the report.
RESOURCES = ("multipliers", "memories", "logic", "registers")


@record
class Family:
    """A family of FPGAs.

    name: what `--synth` takes.
    command: the synthesis command of Yosys, without the top module.
    device: name of the device table whose numbers stand beside those of Yosys.
    weights: for each of `RESOURCES` how much of it a cell takes, by the cell's type; other cells take nothing.
    units: for each of `RESOURCES` what is counted.
    notes: sentences about counts that cannot be compared with those of `lstmsim fit`.
    """

    name: str
    command: str
    device: str
    weights: Mapping[str, Mapping[str, Fraction]]
    units: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def counts(self, cells: Mapping[str, int]) -> dict[str, int]:
        """Count the resources of some cells, rounded up.

        cells: how many there are of each type.

        >>> FAMILIES["ecp5"].counts({"LUT4": 5, "CCU2C": 2, "TRELLIS_FF": 4, "PFUMX": 1})
        {'multipliers': 0, 'memories': 0, 'logic': 9, 'registers': 4}
        """
        exact = {
            each: sum(
                (Fraction(number) * self.weights[each].get(kind, 0) for kind, number in cells.items()), Fraction()
            )
            for each in RESOURCES
        }
        return {each: -(-value.numerator // value.denominator) for each, value in exact.items()}


def _of(**weights: int | str) -> dict[str, Fraction]:
    return {kind: Fraction(weight) for kind, weight in weights.items()}


_NOT_HELD = "the formulas of fit are held against ecp5 only (docs/rtl.md, section 8)"

_ECP5 = Family(
    "ecp5",
    "synth_ecp5",
    "ecp5-85",
    {
        "multipliers": _of(MULT18X18D=1),
        "memories": _of(DP16KD=1, PDPW16KD=1),
        # A carry cell takes both LUTs of a slice, a memory of 16 x 4 bits the LUTs of three slices.
        "logic": _of(LUT4=1, CCU2C=2, TRELLIS_DPR16X4=6),
        "registers": _of(TRELLIS_FF=1),
    },
    {"multipliers": "MULT18X18D", "memories": "EBR of 18 Kbit", "logic": "LUT4", "registers": "registers"},
)

_XILINX = Family(
    "xilinx",
    "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
    "artix-7-200t",
    {
        "multipliers": _of(DSP48E1=1),
        "memories": _of(RAMB18E1=1, RAMB36E1=2),
        "logic": {
            **_of(LUT1=1, LUT2=1, LUT3=1, LUT4=1, LUT5=1, LUT6=1, INV=1, SRL16E=1, SRLC32E=1),
            **_of(RAM32X1D=2, RAM64X1D=2, RAM128X1D=4, RAM32M=4, RAM64M=4, RAM32X1S=1, RAM64X1S=1),
        },
        "registers": _of(FDRE=1, FDSE=1, FDCE=1, FDPE=1),
    },
    {"multipliers": "DSP48E1", "memories": "RAMB18", "logic": "LUT", "registers": "registers"},
    (
        _NOT_HELD,
        "registers: delay lines are LUTs (SRL16E, counted as logic), registers beside products lie in DSP48E1; fit "
        "counts all of them as registers",
    ),
)

_INTEL = Family(
    "intel-alm",
    "synth_intel_alm -family cyclonev -noiopad -noclkbuf",
    "cyclone-v-se-a6",
    {
        "multipliers": _of(MISTRAL_MUL27X27=1, MISTRAL_MUL18X18="1/2", MISTRAL_MUL9X9="1/3"),
        "memories": _of(MISTRAL_M10K=1),
        # An ALM is one function of six inputs, two of up to four, or two bits of an adder. A cell MISTRAL_MLAB is one
        # of the twenty columns of a block that takes ten ALMs.
        "logic": {
            **_of(MISTRAL_ALUT6=1, MISTRAL_ALUT5="1/2", MISTRAL_ALUT4="1/2", MISTRAL_ALUT3="1/2"),
            **_of(MISTRAL_ALUT2="1/2", MISTRAL_NOT="1/2", MISTRAL_ALUT_ARITH="1/2", MISTRAL_MLAB="1/2"),
        },
        "registers": _of(MISTRAL_FF=1),
    },
    {"multipliers": "DSP", "memories": "M10K", "logic": "ALM", "registers": "registers"},
    (
        _NOT_HELD,
        "multipliers: up to three products share a DSP, and each part is rounded up: parts may be more than the whole",
        "memories: Yosys puts those of up to 25 words into logic (MLAB), fit those of up to 32",
    ),
)

#: The families by name.
FAMILIES: Mapping[str, Family] = {each.name: each for each in (_ECP5, _XILINX, _INTEL)}


def family_of(name: str) -> Family:
    """Give the family of that name; `InputError` with the nearest name if there is none.

    name: what `--synth` got.

    >>> family_of("ecp5").device
    'ecp5-85'
    """
    if name not in FAMILIES:
        there = ", ".join(FAMILIES)
        raise InputError(f"no family of FPGAs called {show(name)}{nearest(name, FAMILIES)}; there are: {there}")
    return FAMILIES[name]
