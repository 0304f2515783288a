"""ONNX networks: the recurrent layers of a file, followed through the operations that exporters put around them.

From below: `graph` (names and scopes), `shapes`, `axes` and `layouts` (what an axis is), `stored` and `constants`
(numbers); `nodes` and `weights` (one recurrent node), `stacks` (which nodes are one model), `steps`, `chains` and
`unrolled` (cells written out step by step), `sizes` and `operators` (all other nodes). `file` puts them together.
"""
