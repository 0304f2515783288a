"""Lowered programs that were kept (`lstmsim program`)."""
