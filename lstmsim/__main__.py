"""`python -m lstmsim` is the command `lstmsim`."""

from __future__ import annotations

from lstmsim.cli import main

if __name__ == "__main__":
    main()
