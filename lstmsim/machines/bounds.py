"""What a machine says of the least cycles of jobs, for many cores at once: the answers of its `bounds` module.

`registry.capability(kind, "bounds")` is a module of these functions; a core is whatever its `read` gives.

* `read(entry)`: a core of an entry of a file, whose numbers may be columns, one number for each design.
* `broken(cores, counts)`: by the name of a rule, which designs break it. A rule may be left out: it is then found when
  the design is simulated. None may be told of a design that can be simulated.
* `able(core, model)`: which cores can run a model.
* `least(core, model, steps, interval, batch)`: a `Least`.
* `contexts(core)`, `peak(core)`: jobs that a core holds at once; multiply-accumulates that it can do in a cycle.
* `loads(chip, cores, counts, jobs)`: the least makespan that a memory beside the chip gives; None without one.
* `axes(core)`: keys of a core that are worth a try, with values, for spaces that nobody has given; may be left out.

docs/design.md has what they are used for, and the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim.base.records import record

#: A whole number, or one for each design (`NDArray[np.int64]`); of questions, truth values.
Column = Any


@record
class Least:
    """The least cycles of a job on a core, whatever else the core does.

    work: for units that work on one job at a time, by name: (cycles that the job takes there, cycles from the last of
        them to the job's finish). The cycles of such a unit before its first one may be counted among the latter.
    alone: from its arrival to its finish.
    held: cycles in which it holds one of the core's contexts.
    """

    work: Mapping[str, tuple[Column, Column]]
    alone: Column
    held: Column
