"""Weights of networks in files: written and read in lstmsim's layout, imported from other frameworks' files."""

from lstmsim.formats.weights.files import RNN_CELLS, SUFFIXES, import_weights, read_states, read_weights, write_weights

__all__ = ["RNN_CELLS", "SUFFIXES", "import_weights", "read_states", "read_weights", "write_weights"]
