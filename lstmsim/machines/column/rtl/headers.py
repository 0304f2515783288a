"""What each module includes: of the sizes and tables of a design those that it reads, and no others.

So a reader sees what a module depends on, and a lint sees nothing that is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["headers", "inlined", "localparams"]

_PARAMETER = re.compile(r"^[ \t]*localparam\b[^=;]*?(\w+)\s*=[^;]*;", re.MULTILINE)
_MODULE = re.compile(r"^module\s+(\w+).*?^endmodule\b", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL)
#: A name that is no port or parameter of an instance.
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_WHOLE = re.compile(r'^[ \t]*`include "npu_config\.vh"\n', re.MULTILINE)


def localparams(text: str) -> dict[str, str]:
    """Give the localparams of a text: the statement of each by its name, in their order.

    >>> localparams("// sizes\\nlocalparam CORES = 2;\\nlocalparam integer W = CORES + 1;")
    {'CORES': 'localparam CORES = 2;', 'W': 'localparam integer W = CORES + 1;'}
    """
    return {found[1]: found[0].strip() for found in _PARAMETER.finditer(_COMMENT.sub("", text))}


def _needed(text: str, known: Mapping[str, str]) -> str:
    """The statements of what a text names, and of what these name."""
    todo, wanted = _words(text), set[str]()
    while todo:
        name = todo.pop()
        if name in known and name not in wanted:
            wanted.add(name)
            todo |= _words(known[name]) - wanted
    return "".join(f"{statement}\n" for name, statement in known.items() if name in wanted)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_COMMENT.sub("", text)))


def _modules(verilog: str) -> Iterator[tuple[str, str]]:
    """The modules of a text: name and text of each."""
    for found in _MODULE.finditer(verilog):
        yield found[1], found[0]


def headers(files: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Give `rtl/<module>.vh` of each module that includes it.

    files: hand-written Verilog by path.
    known: as `localparams` gives them, of the whole design.

    >>> headers({"rtl/a.v": 'module a;\\n`include "a.vh"\\nwire [W:0] x;\\nendmodule'}, {"W": "localparam W = 3;"})
    {'rtl/a.vh': '// What a reads of npu_config.vh.\\nlocalparam W = 3;\\n'}
    """
    return {
        f"rtl/{name}.vh": f"// What {name} reads of npu_config.vh.\n{_needed(text, known)}"
        for path, verilog in files.items()
        if path.endswith(".v")
        for name, text in _modules(verilog)
        if f'`include "{name}.vh"' in text
    }


def inlined(verilog: str, known: Mapping[str, str]) -> str:
    """Put into each generated module what it reads, in the place of the whole `npu_config.vh`.

    verilog: generated Verilog.
    known: as `localparams` gives them, of the whole design.
    """

    def filled(found: re.Match[str]) -> str:
        return _WHOLE.sub(lambda _: _needed(found[0], known), found[0])

    return _MODULE.sub(filled, verilog)
