"""EdgeDRNN: a delta-GRU accelerator that fetches only the weight columns whose input has changed (docs/edgedrnn.md)."""
