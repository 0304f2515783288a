"""The same jobs on several chips, side by side, with published figures."""
