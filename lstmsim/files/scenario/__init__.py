"""Scenario, chip and model files: their keys, what the values must satisfy together, the descriptions made of them."""
