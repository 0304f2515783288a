"""Sparse matrices in files."""

from lstmsim.formats.matrices.files import SUFFIXES, MatrixFile, is_matrix_file, read_matrix, write_matrix

__all__ = ["SUFFIXES", "MatrixFile", "is_matrix_file", "read_matrix", "write_matrix"]
