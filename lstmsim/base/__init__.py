"""What everything else stands on: errors, keys and checks, bounds, records, files written whole, child processes."""
