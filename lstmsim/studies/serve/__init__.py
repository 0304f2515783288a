"""Runs of many requests: one job alone, streams of requests, the rates that a machine can bear."""
