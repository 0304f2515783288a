"""The structural model of the column-wise NPU: it executes a trace on real numbers, tile by tile."""
