"""A module under Icarus: what its inputs are in each cycle goes in, what its outputs are in each cycle comes out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

__all__ = ["numbers", "simulated"]

_VERILOG = files("lstmsim.machines.column.rtl") / "verilog"

_BENCH = """\
`default_nettype none
module bench;
  reg clock = 1'b0;
  reg [{ins}-1:0] given [0:{cycles}-1];
  reg [{ins}-1:0] in;
  wire [{outs}-1:0] out;
  integer i;
  {module} #({parameters}) dut ({clock}{ports});
  initial begin
    $readmemh("given.hex", given);
    for (i = 0; i < {cycles}; i = i + 1) begin
      in = given[i];
      #1 $display("%b", out);
      clock = 1'b1;
      #1 clock = 1'b0;
    end
  end
endmodule
"""


def simulated(
    folder: Path,
    module: str,
    parameters: Mapping[str, int],
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    cycles: Sequence[Mapping[str, int]],
    clocked: bool = True,
    written: Mapping[str, str] | None = None,
) -> list[dict[str, str]]:
    """Simulate a module; give every output's bits in each cycle, `x` for what nobody has written.

    inputs, outputs: name to width. cycles: value of every input in each cycle; an input that is left out is 0.
    written: further files by name; those that end in `.v` are compiled, the others can be included.
    """
    ports: list[str] = []
    place = 0
    for bus, sizes in (("in", inputs), ("out", outputs)):
        place = 0
        for name, width in sizes.items():
            ports.append(f".{name}({bus}[{place} +: {width}])")
            place += width
    text = _BENCH.format(
        ins=sum(inputs.values()),
        outs=place,
        cycles=len(cycles),
        module=module,
        parameters=", ".join(f".{name}({value})" for name, value in parameters.items()),
        clock=".clock(clock), " if clocked else "",
        ports=", ".join(ports),
    )
    (folder / "bench.v").write_text(text)
    (folder / "given.hex").write_text("".join(f"{_word(each, inputs):x}\n" for each in cycles))
    sources = sorted(str(each) for each in _VERILOG.iterdir() if each.name.startswith(("npu_lib", "npu_a", "npu_m")))
    sources += [str(_VERILOG / f"npu_{name}_memory.v") for name in ("unit", "vector")]
    for name, own in (written or {}).items():
        (folder / name).write_text(own)
        sources += [name] if name.endswith(".v") else []
    built = str(folder / "bench.vvp")
    subprocess.run(["iverilog", "-g2005", "-o", built, "-s", "bench", *sources, "bench.v"], cwd=folder, check=True)
    ran = subprocess.run(["vvp", "-n", built], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    lines = [line for line in ran.stdout.splitlines() if set(line) <= set("01xz")]
    assert len(lines) == len(cycles)
    return [_fields(line, outputs) for line in lines]


def _word(values: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    word = place = 0
    for name, width in sizes.items():
        word |= (values.get(name, 0) & ((1 << width) - 1)) << place
        place += width
    return word


def _fields(line: str, sizes: Mapping[str, int]) -> dict[str, str]:
    fields, end = {}, len(line)
    for name, width in sizes.items():
        fields[name] = line[end - width : end]
        end -= width
    return fields


def numbers(bits: str, width: int, sign: bool = False) -> list[int | None]:
    """The numbers that stand side by side in bits, the first one in the lowest; None where some bit is unknown."""
    parts = [bits[end - width : end] for end in range(len(bits), 0, -width)]
    known = [None if set(part) & set("xz") else int(part, 2) for part in parts]
    return [each if each is None or not sign else each - (each >> (width - 1) << width) for each in known]
