"""One simulation: its report, page and pictures (`lstmsim simulate`)."""
