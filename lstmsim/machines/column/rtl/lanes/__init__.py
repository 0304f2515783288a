"""The tail's lanes of a generated NPU, written from the graphs of its cells and the formats of its passes."""
