"""The frame of pages: one file with everything in it, scripts and data included."""
