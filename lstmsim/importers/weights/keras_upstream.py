"""Which recurrent layers a layer of a Keras model reads, and through which other layers: for notes on single layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lstmsim.base.wording import listed, show

__all__ = ["Upstream", "upstream_of"]

_SHOWN = 4
#: Most layers that a search backwards visits: a hostile configuration has thousands.
_MOST = 300


@dataclass(frozen=True)
class Upstream:
    """The recurrent layers and models behind the frames that a layer reads.

    origins: the nearest recurrent layers and models, in words: `'lstm'`, `model 'inner'`.
    passed: layers in between that change the frames, in words: `Dense 'fc'`.
    shared: whether other layers read the same output.
    outside: whether the origins are outside the model that the layer is in.
    """

    origins: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    shared: bool = False
    outside: bool = False

    def sentence(self, name: str, lower: str = "") -> str:
        """Say why a layer forms no stack with what it reads; empty if nothing recurrent is behind its frames.

        name: the layer.
        lower: why the layer and its only origin, which it reads directly, form no stack; `{}` stands for the origin.

        >>> Upstream(("'a'",), ("Dense 'fc'",)).sentence("b")
        "'b' reads 'a' through Dense 'fc': a model of its own, not a stack"
        """
        if not self.origins:
            return ""
        words = listed(_some(self.origins), "and")
        if self.passed:
            words = f"{words} through {', '.join(_some(self.passed))}"
        elif self.outside:
            words = f"{words} from outside its own model"
        elif lower:
            words = lower.format(words)
        elif self.shared:
            words = f"{words}, which other layers read too"
        return f"{show(name)} reads {words}: a model of its own, not a stack"


def _some(words: Sequence[str]) -> list[str]:
    return [*words[:_SHOWN], *([f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else [])]


def upstream_of(
    name: str,
    reads: Mapping[str, Sequence[str]],
    origins: Mapping[str, str],
    changing: Mapping[str, str],
    shared: Collection[str],
    around: Upstream,
) -> Upstream:
    """Search what is behind the frames of a layer.

    name: the layer.
    reads: layer -> the layers whose outputs are its frames.
    origins: layer at which the search stops -> the layer in words.
    changing: layer that changes the frames -> the layer in words.
    shared: layers that several others read.
    around: what is behind the frames of the model around the layer, for frames that come from outside.

    >>> upstream_of("b", {"b": ["fc"], "fc": ["a"]}, {"a": "'a'", "b": "'b'"}, {"fc": "Dense 'fc'"}, (), Upstream())
    Upstream(origins=("'a'",), passed=("Dense 'fc'",), shared=False, outside=False)
    """
    ends: dict[str, None] = {}
    seen, waiting = {name: None}, [name]
    entered = False
    while waiting and len(seen) < _MOST:
        each = waiting.pop(0)
        below = reads.get(each, ())
        entered = entered or not below
        for source in below:
            if source in origins:
                ends[source] = None
            elif source not in seen:
                seen[source] = None
                waiting.append(source)
    ends.pop(name, None)
    passed = tuple(changing[each] for each in seen if each in changing and each != name)
    also = any(each in shared for each in (*ends, *seen) if each != name)
    words = tuple(origins[each] for each in ends)
    if entered and not words:
        return Upstream(around.origins, (*passed, *around.passed), outside=True)
    return Upstream(words, passed, also)
