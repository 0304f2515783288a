"""The neutral program that targets make and engines run, and the trace that comes out. Knows no target."""
