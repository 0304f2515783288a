"""A run as one self-contained web page: text in, text out, no browser, no network, no scripts."""
