"""Tables in files: CSV, published figures, devices."""
