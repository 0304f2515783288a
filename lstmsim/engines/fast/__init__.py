"""The fast engine: a loop on flat sequences of whole numbers, as it stands or compiled."""
