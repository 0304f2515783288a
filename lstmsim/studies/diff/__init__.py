"""Two runs, and every cycle between them accounted for (`lstmsim diff`)."""
