"""The planner: which cut, which sub-blocks, whether a buffer."""
