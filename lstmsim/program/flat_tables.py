"""The tables of a flat program (`lstmsim.program.flat`): their columns, and what a number in each column says."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.records import record

__all__ = ["FLAT_TABLES", "FORMAT", "WIDTHS", "FlatTable"]

#: The version of the format. The core reads one version (`flat.hpp`).
FORMAT = 3


@record
class FlatTable:
    """One table of a flat program.

    name: its name.
    row: what a row stands for.
    columns: name of each column -> what a number in it says, in the order of the columns.
    """

    name: str
    row: str
    columns: Mapping[str, str]

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return len(self.columns)

    def place(self, column: str) -> int:
        """The place of a column.

        >>> FLAT_TABLES["units"].place("switch_cycles")
        1
        """
        return tuple(self.columns).index(column)


#: All tables, in their order.
FLAT_TABLES: Mapping[str, FlatTable] = {
    table.name: table
    for table in (
        FlatTable(
            "head",
            "the program; there is one row",
            {
                "names": "how many names a core's cycles can have (`lstmsim.program.stall_reasons.CYCLE_NAMES`)",
                "busy": "number of the name of a cycle in which the accounted unit issues",
                "switching": "... in which it changes threads",
                "drain": "... in which no operation for it is left, but results are not there yet",
                "idle": "... in which there is nothing to do",
                "input": "number of the cause of a wait for a frame",
            },
        ),
        FlatTable(
            "causes",
            "a cause of waiting, the strongest first",
            {"name": "number of the name of a cycle in which a thread waits for this cause"},
        ),
        FlatTable(
            "cores",
            "a core",
            {
                "kind": "cores of one kind run the same variant of a task",
                "contexts": "how many threads it has",
                "first_unit": "its units",
                "units": "how many",
                "accounted": "which of them is accounted; -1: none",
                "capacity": "how much content its memory holds; -1: any amount",
                "shared": "1 if it has threads for the tasks of all other cores",
                "mirrors": "1 if its threads stand for the threads of all cores that are not shared",
                "first_held": "contents in its memory at the start, the least recently used first",
                "held": "how many",
            },
        ),
        FlatTable(
            "units",
            "a unit of a core",
            {
                "policy": "number of its policy (`lstmsim.program.policy.POLICIES`)",
                "switch_cycles": "cycles of a change of the active thread",
                "ways": "how many equal units stand behind it",
            },
        ),
        FlatTable("held", "a content in a memory at the start", {"content": "which"}),
        FlatTable(
            "contents",
            "a content that tasks need in memories",
            {"key": "its number in the program; -1: room for one task alone", "size": "in the unit of `capacity`"},
        ),
        FlatTable(
            "groups",
            "places that the same tasks may use",
            {"first_place": "the places, in the order of the tasks' cores", "places": "how many"},
        ),
        FlatTable(
            "places",
            "a place where a task may run",
            {"first_seat": "its cores, in the order of the task's members", "seats": "how many"},
        ),
        FlatTable("seats", "a core of a place", {"core": "which"}),
        FlatTable(
            "profiles",
            "what many tasks have in common",
            {
                "group": "where they may run",
                "content": "what they need in memories; -1: nothing",
                "loading": "how many of their first phases load it",
                "affine": "1 if they prefer a place that holds it",
                "preempts": "1 if they ask others to pause",
                "queue_limit": "with how many waiting before them they are turned away; -1: never",
                "patience": "after how many cycles of waiting they are turned away; -1: never",
                "first_variant": "their variants for kinds of cores",
                "variants": "how many",
                "first_wide": "their variants for several of their cores at once",
                "wides": "how many",
            },
        ),
        FlatTable(
            "variants",
            "phases and buffers of a task on a kind of core, or on several of its cores",
            {
                "kind": "of the place's first core",
                "members": "how many cores",
                "first_phase": "its phases",
                "phases": "how many",
                "first_buffer": "its buffers",
                "buffers": "how many",
            },
        ),
        FlatTable(
            "phases",
            "a body that repeats",
            {
                "body": "which",
                "repeat": "how many iterations",
                "mirrored": "1 if the steps descend",
                "first_step": "the time step of iteration 0",
                "first_extra": "its columns of extra cycles, one after the other, each with a row for each iteration",
                "extras": "how many columns",
                "first_gate": "gate 0 of iteration 0",
                "gates": "how many gates an iteration has",
            },
        ),
        FlatTable("extras", "an iteration of a phase", {"cycles": "that some operations take more"}),
        FlatTable(
            "buffers",
            "a buffer of each thread of a variant",
            {"slots": "how many", "cause": "number of the cause of a wait for a slot"},
        ),
        FlatTable(
            "bodies",
            "the operations of one iteration",
            {
                "first_operation": "its rows of `operations` in issue order; of a packed body -1",
                "operations": "how many operations it has",
                "first_word": "its rows of `words`; of a body that is not packed -1",
                "words": "how many",
            },
        ),
        FlatTable(
            "words",
            "an operation, or one of the needs that follow it, of a packed body",
            {
                "word": "of an operation: 256 times a row of `operations`, whose needs do not count, plus how many "
                "needs follow; of a need: 2**32 times a row of `needs`, plus 2**31, plus what stands in place of its "
                "`operation`"
            },
        ),
        FlatTable(
            "operations",
            "some issues in a row of the same kind",
            {
                "unit": "number of the unit of its core",
                "cycles": "length of each issue",
                "count": "how many issues; 0: it only waits, as the last operation of its stream",
                "frame": "1 if the first issue waits for the task's input frame",
                "takes": "the variant's buffer of which the first issue takes a slot; -1: none",
                "frees": "the variant's buffer of which a slot is free at the end of the last issue; -1: none",
                "result_cycles": "cycles from the start of the last issue to its results",
                "work": "useful multiply-accumulates of one issue",
                "first_need": "what the first issue waits for",
                "needs": "how many",
                "ahead": "how many steps after the iteration's own step the frame is",
                "member": "which of the task's cores runs it",
                "extra": "the phase's column of extra cycles that it takes; -1: none",
                "arrives": "the gate of the body at which it arrives; -1: none",
            },
        ),
        FlatTable(
            "needs",
            "a dependence",
            {
                "operation": "place of the other operation in its body, or number of a gate of the body",
                "delay": "cycles after the start of the other operation's last issue, at least 1",
                "cause": "number of the cause of a wait for it",
                "lag": "in the same body, how many iterations earlier the other operation is",
                "phase": "the variant's earlier phase with the other operation; -1: the same body",
                "mirrored": "1 if the other operation's iteration is counted from the end of that phase",
                "gate": "1 if `operation` is the number of a gate",
            },
        ),
        FlatTable(
            "tasks",
            "a task",
            {
                "profile": "what it has in common with others",
                "release": "cycle of its arrival, or cycles from the end of the task that it comes after",
                "frame_interval": "cycles between its frames",
                "key": "its rank",
                "key_from_arrival": "1 if its arrival is added to its rank",
                "after": "an earlier task that it comes after; -1: none",
                "behind": "a gate that it comes after; -1: none",
                "starts": "a gate at which it arrives when it is admitted; -1: none",
                "ends": "a gate at which it arrives when it finishes; -1: none",
                "until": "a gate before which it does not finish; -1: none",
            },
        ),
        FlatTable("gates", "a gate", {"arrivals": "how many must arrive there before it opens"}),
    )
}

#: How many columns each table has.
WIDTHS: Mapping[str, int] = {name: table.width for name, table in FLAT_TABLES.items()}
