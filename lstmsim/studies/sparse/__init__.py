"""Products with sparse matrices (`lstmsim sparse`)."""
