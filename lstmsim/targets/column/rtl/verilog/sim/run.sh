#!/bin/sh
# Simulates the design with Icarus Verilog; then compare: diff golden/events.txt events.txt
# -DNPU_TIMING_ONLY as first argument leaves the numbers out: then compare all lines but those of H.
cd "$(dirname "$0")/.." &&
  iverilog -g2005 "$@" -I rtl -s npu_tb -o npu.vvp rtl/*.v sim/*.v &&
  vvp npu.vvp
