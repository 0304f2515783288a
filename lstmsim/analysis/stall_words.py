"""Look and words of each stall reason and of each other name of cycles: all that reports and pictures read.

Names and their orders stand in `lstmsim.program.stall_reasons`. A test holds that none is missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lstmsim.base.records import record
from lstmsim.model.figures import Words
from lstmsim.report.styles import JOB_STYLES, Style

#: In a busy cycle of a core, some multipliers are useful and others are not: PE-cycles have these names for `busy`.
PE_NAMES = ("useful", "padding", "unmapped")


@record
class Named:
    """A name of cycles or PE-cycles, for people. Sentences have no full stop. An empty sentence is never shown.

    style: look in pictures and pages; work looks like its job, so only PE-cycles use the style of `busy` and `useful`.
    dark: fill and ink on a dark page; None if they are the same as on a light page.
    meaning: what such a cycle is, in reports; a machine may have other words (`lstmsim.model.figures.Words`).
    glossary: what such a cycle is, in the glossary of explanations.
    legend: the name in the legend of a timeline picture; empty if it is the same.
    held_by: what the critical path waited for.
    next_wait: what the next step of the path waits for, in a column of a table.
    share: what goes on in such a cycle of a request.
    spent: the end of the sentence "they spent 71 % of their time ...".
    leg: the way off a core's main unit that such a wait makes, of `explanations.explanation.LEGS`; empty: no
        way of its own.
    everyday: whether texts also have the word for other things; only a machine with words for it then has it in the
        glossary.
    """

    style: Style
    dark: tuple[str, str] | None = None
    meaning: str = ""
    glossary: str = ""
    legend: str = ""
    held_by: str = ""
    next_wait: str = ""
    share: str = ""
    spent: str = ""
    leg: str = ""
    everyday: bool = False


#: By name, in the order of legends. Waits are light; each cause has its own tint and hatch: short spans show the tint.
NAMED: Mapping[str, Named] = MappingProxyType(
    {
        "hazard": Named(
            Style("#FFB9BF", "////", "#555555"),
            ("#734248", "#B9C0C7"),
            meaning="threads wait for their own results",
            glossary="data hazard: nothing can issue, because a thread needs results that are still on their way",
            legend="data hazard",
            held_by="results (hazard)",
            next_wait="result",
            share="its own results are on their way",
            spent="waiting for own results (hazard)",
        ),
        "backpressure": Named(
            Style("#D1BEF4", "\\\\\\\\", "#555555"),
            ("#564A6F", "#B9C0C7"),
            meaning="threads wait for room for what is under way",
            glossary="nothing can issue, because there is no room for the results: what was issued before still has it",
            held_by="room (backpressure)",
            next_wait="room",
            share="there is no room for its results",
            spent="waiting for room (backpressure)",
            leg="room",
        ),
        "input": Named(
            Style("#C3EEBD", "xxx", "#555555"),
            ("#294727", "#B9C0C7"),
            meaning="threads wait for their next input frame",
            glossary="nothing can issue, because the next frame of x has not come",
            legend="waits for input",
            held_by="input",
            next_wait="frame",
            share="its frame has not come",
            spent="waiting for frames (input)",
        ),
        "dispatch": Named(
            Style("#8CDDDA", "...", "#555555"),
            ("#175958", "#B9C0C7"),
            meaning="the next instruction is not there yet",
            glossary="nothing can issue, because the next instruction has not come or is not decoded",
            legend="waits for its instruction",
            held_by="instructions (dispatch)",
            next_wait="instruction",
            share="its instruction has not come",
            spent="waiting for instructions (dispatch)",
        ),
        "reload": Named(
            Style("#E4BD8E", "++", "#555555"),
            ("#644C2B", "#B9C0C7"),
            meaning="a model's weights are loaded in place of another's",
            glossary="nothing can issue, because a model's weights are being loaded in place of another's",
            legend="waits for its model's weights",
            held_by="a model's weights (reload)",
            next_wait="model's weights",
            share="its model's weights are loaded",
            spent="waiting for the model's weights (reload)",
            leg="weights",
        ),
        "weights": Named(
            Style("#FFDCB8", "oo", "#555555"),
            ("#523C24", "#B9C0C7"),
            meaning="threads wait for weights that are streamed from the memory",
            glossary="nothing can issue, because weights are still being streamed from the memory",
            legend="waits for streamed weights",
            held_by="streamed weights (weights)",
            next_wait="weights",
            share="its weights are streamed",
            spent="waiting for streamed weights (weights)",
            leg="weights",
        ),
        "memory": Named(
            Style("#EEB5DF", "**", "#555555"),
            ("#6A4360", "#B9C0C7"),
            meaning="threads wait for data from the memory",
            glossary="nothing can issue, because data that threads load are still on their way",
            legend="waits for the memory",
            held_by="loads (memory)",
            next_wait="load",
            share="its data are on their way from the memory",
            spent="waiting for data (memory)",
            everyday=True,
        ),
        "contention": Named(
            Style("#C7CA99", "+", "#555555"),
            ("#505230", "#B9C0C7"),
            meaning="threads wait for a result that another thread is adding to",
            glossary="nothing can issue, because another thread adds to the result that a thread would add to",
            legend="waits for another's result",
            held_by="results that others add to (contention)",
            next_wait="turn at a result",
            share="another thread adds to the result that it would add to",
            spent="waiting for results that others add to (contention)",
            everyday=True,
        ),
        "barrier": Named(
            Style("#F6DDFC", "OO", "#555555"),
            ("#4A3B4E", "#B9C0C7"),
            meaning="threads wait for others at a barrier",
            glossary="nothing can issue, because threads wait at a barrier until others have come there",
            legend="waits at a barrier",
            held_by="others at a barrier (barrier)",
            next_wait="barrier",
            share="others have not come to its barrier",
            spent="waiting at barriers (barrier)",
            everyday=True,
        ),
        "dependence": Named(
            Style("#FFC0AB", "//", "#555555"),
            ("#6F4638", "#B9C0C7"),
            meaning="threads wait for results of their own arithmetic",
            glossary="nothing can issue, because threads need results of arithmetic that are still on their way",
            legend="waits for arithmetic",
            held_by="arithmetic (dependence)",
            next_wait="arithmetic",
            share="results of its arithmetic are on their way",
            spent="waiting for arithmetic (dependence)",
            everyday=True,
        ),
        "start": Named(
            Style("#CAF0E8", "\\\\", "#555555"),
            ("#2B453F", "#B9C0C7"),
            meaning="threads have their work, and are being started",
            glossary="nothing can issue, because threads are being started",
            legend="is being started",
            held_by="starts of threads (start)",
            next_wait="start",
            share="its threads are being started",
            spent="being started (start)",
            everyday=True,
        ),
        "activation": Named(
            Style("#96D4B4", "xx", "#555555"),
            ("#2C5943", "#B9C0C7"),
            meaning="the multipliers compute activations",
            glossary="no column is multiplied, because the multipliers compute activations",
            legend="computes activations",
            held_by="activations (activation)",
            next_wait="activations",
            share="the multipliers compute its activations",
            spent="in activations (activation)",
            everyday=True,
        ),
        "scan": Named(
            Style("#E6E2A4", "-", "#555555"),
            ("#424218", "#B9C0C7"),
            meaning="the encoder looks for elements that have changed",
            glossary="no column is multiplied, because the encoder has found no changed element yet",
            legend="looks for changes",
            held_by="the search for changes (scan)",
            next_wait="changed element",
            share="the encoder looks for elements of it that have changed",
            spent="looking for changes (scan)",
            everyday=True,
        ),
        "drain": Named(
            Style("#DBD7CC", "---", "#555555"),
            ("#3F3E38", "#B9C0C7"),
            meaning="the last results are on their way",
            glossary="everything has issued, and the last results are on their way",
            share="its last results are on their way",
            spent="waiting for the last results (drain)",
        ),
        "switch": Named(
            Style("#BBBBBB", "|||", "#555555"),
            ("#5A5A5A", "#B9C0C7"),
            meaning="changing from one thread to another",
            glossary="the unit changes from one thread to another, and nothing can issue",
            legend="thread switch",
            held_by="thread switches",
            next_wait="switch",
            share="it could issue, the unit changes threads",
            spent="in thread switches",
        ),
        "ready": Named(
            Style("#F2F2F2", "", "#666666"),
            ("#2A2F34", "#A0A7AE"),
            meaning="the thread could go on, another has its turn",
            legend="ready, waits its turn",
        ),
        "idle": Named(
            Style("#FFFFFF", "", "#666666"),
            ("#15191E", "#A0A7AE"),
            meaning="no job is on the core",
            glossary="no job is on the core",
        ),
        "useful": Named(
            JOB_STYLES[0],
            meaning="multiply-accumulates of the models",
            glossary="multipliers do multiply-accumulates of the models",
        ),
        "busy": Named(
            JOB_STYLES[0],
            meaning="the unit issues",
            glossary="the unit issues; without a unit's name: the core's main unit does",
        ),
        "padding": Named(
            Style("#9CCBE8", "", "#000000"),
            meaning="the core issues, and does no multiply-accumulate of a model",
            glossary="the core issues, and does no multiply-accumulate of a model",
        ),
        "unmapped": Named(
            Style("#D6E8F3", "..", "#4A7E9E"),
            ("#1F3442", "#6FA3C2"),
            meaning="what takes no part when the core issues",
            glossary="what takes no part when the core issues",
        ),
    }
)


def pe_names(cycle_names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of PE-cycles of a machine whose cycles have these names."""
    return (*PE_NAMES, *(name for name in cycle_names if name != "busy"))


def meaning_of(name: str, words: Mapping[str, Words] = MappingProxyType({})) -> str:
    """Give the meaning of a name of cycles: the machine's own (`words`), else the common one; empty: it has none."""
    own = words.get(name, Words()).meaning
    return own or (NAMED[name].meaning if name in NAMED else "")
