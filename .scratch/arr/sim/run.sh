#!/bin/sh
# Simulates the design with Icarus Verilog and compares its log with what lstmsim says: "equal", or where it is not.
# A design without numbers has no npu_pick.v. Arguments are handed to the compiler. Hardware that stands still is ended
# 1000 cycles after the last one of lstmsim.
cd "$(dirname "$0")/.." || exit
last=$(tail -n 1 golden/events.txt | cut -d ' ' -f 2)
[ -e rtl/npu_pick.v ] || set -- "$@" -DNPU_TIMING_ONLY
iverilog -g2005 "$@" -I rtl -I sim -s npu_tb -o npu.vvp rtl/*.v sim/*.v &&
  vvp -n npu.vvp "+limit=$((last + 1000))" &&
  diff golden/events.txt events.txt && echo equal
