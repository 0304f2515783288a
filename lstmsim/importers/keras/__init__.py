"""Keras: configurations, files and models in memory, read; nothing of Keras is imported."""
