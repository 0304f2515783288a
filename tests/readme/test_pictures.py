"""The README's picture shows what the simulation draws now: compared by the data that is drawn, not by pixels."""

from __future__ import annotations

import re

import pytest

from tests.readme.test_readme import ROOT
from tests.readme.test_readme import TEXT as README
from tools.readme import PICTURE, digest_in, drawn, png_of, readme_picture

pytestmark = pytest.mark.skipif(not README, reason="the README is in the checkout only")


@pytest.mark.needs_core
def test_the_picture_of_the_readme_is_as_new_as_the_code_that_draws_it() -> None:
    shown = {ROOT / each for each in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)}
    assert shown == {PICTURE}, "a picture that `make readme` does not draw"
    picture = readme_picture()
    now = drawn(picture)
    assert digest_in(PICTURE) == now, "run `make readme`"
    bars = next(each for each in picture.axes[0].collections if each.get_hatch())
    bars.set_hatch("+")
    hatched = drawn(picture)
    assert hatched != now, "another hatching is another picture"
    picture.axes[0].set_xlabel("another word")
    assert len({now, hatched, drawn(picture)}) == 3


@pytest.mark.slow
def test_the_file_names_the_digest_of_its_data_and_is_written_the_same_twice(tmp_path) -> None:
    first, second = (png_of(readme_picture()) for _ in range(2))
    assert first == second
    (tmp_path / "picture.png").write_bytes(first)
    assert digest_in(tmp_path / "picture.png") == drawn(readme_picture())
