"""What the commands do, as functions."""
