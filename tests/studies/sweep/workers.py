"""What workers have answered for the process that asked them."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim.studies.sweep import ahead


def answered(patch: pytest.MonkeyPatch) -> list[Any]:
    """A list that gets the key of each call whose answer a worker gives, in the order in which they are asked for."""
    keys: list[Any] = []
    answer = ahead.Ahead._answer

    def counted(self: Any, key: Any, future: Any) -> Any:
        if future is not None:
            assert future.exception(60) is None
            keys.append(key)
        return answer(self, key, future)

    patch.setattr(ahead.Ahead, "_answer", counted)
    return keys
