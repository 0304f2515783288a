"""ONNX networks: the recurrent layers of a file, followed through the operations that exporters put around them.

From below: `values`, `graph` (names and scopes), `shapes`, `axes` and `layouts` (what an axis is), `constants` and
`external` (numbers). Then `nodes`, `cells`, `states` and `lengths` (one recurrent node), `stacks` (which nodes are one
model), `steps` and `chains` (cells that are written out step by step), `heads` and `operators` (all other nodes).
`file` puts the results together.
"""
