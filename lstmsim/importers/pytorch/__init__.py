"""PyTorch: files and modules in memory, read; nothing of PyTorch is imported and nothing in a file is called."""
