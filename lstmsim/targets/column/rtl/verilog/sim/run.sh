#!/bin/sh
# Simulates the design with Icarus Verilog and compares its log with what lstmsim says: "equal", or where it is not.
# A design without numbers has no npu_data.vh. Arguments are handed to the compiler.
cd "$(dirname "$0")/.." || exit
[ -e rtl/npu_data.vh ] || set -- "$@" -DNPU_TIMING_ONLY
iverilog -g2005 "$@" -I rtl -s npu_tb -o npu.vvp rtl/*.v sim/*.v &&
  vvp -n npu.vvp &&
  diff golden/events.txt events.txt && echo equal
