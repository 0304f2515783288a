"""Sparse matrices in files, and the weight matrices of models by name."""

from lstmsim.files.matrices.files import SUFFIXES, MatrixFile, is_matrix_file, read_matrix, write_array, write_matrix
from lstmsim.files.matrices.weights import weight_matrix, weight_names

__all__ = [
    "SUFFIXES",
    "MatrixFile",
    "is_matrix_file",
    "read_matrix",
    "weight_matrix",
    "weight_names",
    "write_array",
    "write_matrix",
]
