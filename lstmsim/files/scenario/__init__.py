"""Scenario, chip and model files: their keys, the rules between their values, the descriptions made of them."""
