"""The fixtures that tests of sweeps share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lstmsim.studies.sweep.bulk import Bulk
from lstmsim.studies.sweep.run import sweep as run_sweep
from tests.studies.sweep.specs import spec


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No point is computed in bulk."""
    monkeypatch.setattr(Bulk, "possible", False)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, run in this process without a break."""
    folder = tmp_path_factory.mktemp("whole")
    run_sweep(spec(), folder, jobs=1)
    return folder
