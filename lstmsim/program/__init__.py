"""The neutral program that targets make and engines run, and the trace of a run. This package knows no target."""
