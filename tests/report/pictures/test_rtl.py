"""The picture of generated hardware beside the simulation: whose work has which colour."""

from __future__ import annotations

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from lstmsim.report.pictures.figures import job_style
from lstmsim.studies.rtl.picture import Row, plot


def fills(figure: Figure) -> set[str]:
    return {to_hex(each.get_facecolor()[0]).upper() for each in figure.axes[0].collections}


def test_more_requests_than_colours_have_that_of_their_entry() -> None:
    for count, colours in ((4, 8), (6, 2)):
        jobs = [f"{name} #{number}" for name in ("voice", "ads") for number in range(1, count + 1)]
        rows = [Row("array", tuple((job, 10 * job, 10 * job + 5) for job in range(2 * count)))]
        figure = plot([("simulated", rows)], jobs, 200, 100.0)
        assert fills(figure) == {job_style(number).fill for number in range(colours)}
        shown = [text.get_text() for text in figure.legends[0].get_texts()]
        assert shown == (jobs if colours == 8 else ["voice", "ads"])
