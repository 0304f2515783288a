"""The column-wise NPU as Verilog: what is built, its tables, memories' contents, its fixed and generated modules."""
