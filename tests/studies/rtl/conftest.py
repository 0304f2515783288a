"""The stub as a machine of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lstmsim.machines import registry
from lstmsim.studies.sweep.resolve import every_core_key, quick_path


def _forget() -> None:
    for asked in (registry.target_of, quick_path, every_core_key):
        asked.cache_clear()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let chips of kind `toy-cpu` have the stub's RTL."""
    monkeypatch.setitem(registry.KINDS, "toy-cpu", "tests.studies.rtl.stub")
    _forget()
    yield
    _forget()
