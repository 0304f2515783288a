"""The fixture that tests of searches share."""

from __future__ import annotations

import pytest

from lstmsim.studies.sweep.bulk import Parts


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair is computed in bulk."""
    monkeypatch.setattr(Parts, "results", lambda *_: {})
