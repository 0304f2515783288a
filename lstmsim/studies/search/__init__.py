"""The best (EP, VP) of a column-wise NPU for given jobs: greedy, exhaustive, and for a mix of models."""
