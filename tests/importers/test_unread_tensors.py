"""What a file of tensors holds beside its recurrent layers is named, with its share of the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lstmsim.importers.files import import_weights
from lstmsim.importers.tensors import write_safetensors
from tests.importers.weight_files import torch_tensors

#: Numbers of an LSTM of 4 units with 4 inputs.
OWN = 4 * 4 * (4 + 4 + 2)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([40], "1 of 5 tensors belongs to no recurrent layer and is left out: 'x0'"),
        ([10] * 4, "4 of 8 tensors belong to no recurrent layer and are left out: 'x0', 'x1', 'x2' and 'x3'"),
        # the largest first
        (
            [1, 2, 3, 4, 30],
            "5 of 9 tensors belong to no recurrent layer and are left out: 'x4', 'x3', 'x2', 'x1' and 1 more",
        ),
    ],
)
def test_what_is_left_out_is_named(sizes: list[int], said: str, tmp_path: Path) -> None:
    assert OWN / (OWN + 40) == 0.8
    own = {f"rnn.{name}": array for name, array in torch_tensors("lstm", 4, 4).items()}
    others = {f"x{number}": np.ones(size) for number, size in enumerate(sizes)}
    write_safetensors(tmp_path / "a.safetensors", own | others, {})
    (model,) = import_weights(tmp_path / "a.safetensors")
    assert f"{said}, 20.0 % of the numbers in the file" in model.notes
    write_safetensors(tmp_path / "b.safetensors", own, {})
    (model,) = import_weights(tmp_path / "b.safetensors")
    assert not [each for each in model.notes if "left out" in each]
