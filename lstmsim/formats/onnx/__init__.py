"""ONNX networks: what a file says of its recurrent layers, followed through what exporters put around them.

From below: `values`, `graph` (names and scopes), `shapes`, `axes` and `layouts` (what an axis is), `constants` and
`external` (numbers); then `nodes`, `cells`, `states` and `lengths` (one recurrent node), `stacks` (which nodes are one
model), `steps` and `chains` (cells that are written out step by step), `heads` and `operators` (all the rest), and
`file`, which puts them together.
"""
