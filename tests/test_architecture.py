"""The house rules of the package, read off its source: layers, who may import what, sizes, docstrings."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lstmsim
from lstmsim.machines.registry import KINDS
from lstmsim.native.sources import COMMON, cores_of

PACKAGE = Path(lstmsim.__file__).parent
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None

#: Which packages each package imports. What stands here and is not used fails, as does what is used and does not stand
#: here. Imports go down only: no package stands here before one that it imports.
BELOW: dict[str, set[str]] = {
    "base": set(),
    "native": {"base"},
    "report": {"base"},
    "model": {"base"},
    "program": {"base"},
    "importers": {"base", "model"},
    "engines": {"base", "native", "program"},
    "machines": {"base", "native", "model", "program"},
    "analysis": {"base", "report", "model", "program", "importers", "engines", "machines"},
    "traffic": {"base", "model"},
    "files": {"base", "model", "program", "importers", "machines", "traffic"},
    "studies": {
        *("base", "report", "model", "program", "importers", "engines", "machines", "analysis", "traffic", "files"),
        "",
    },
    "cli": {"base", "report", "model", "importers", "analysis", "traffic", "files", "studies", ""},
    "__main__": {"cli"},
    # The package itself only names the homes of its public names.
    "": {"base", "report", "model", "importers", "machines", "files", "studies", "analysis"},
}
#: Circles of rooms: who imports the package itself, which names the homes of its public names, and for what. It imports
#: none of these when it is loaded (its imports are for type checkers), so nothing is loaded in a circle.
CIRCLES = {"studies": "the version, which pages show and points of sweeps have in their keys; the public names"}

#: The only places that may import a third-party package (prefixes of module names).
THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "numpy": (
        *(
            "lstmsim.program",
            "lstmsim.engines",
            "lstmsim.model",
            "lstmsim.machines",
            "lstmsim.analysis",
            "lstmsim.traffic",
        ),
        *("lstmsim.files", "lstmsim.importers", "lstmsim.studies"),
    ),
    "simpy": ("lstmsim.engines.reference",),
    "matplotlib": ("lstmsim.report.pictures", "lstmsim.studies"),
    "click": ("lstmsim.cli",),
    "ruamel": ("lstmsim.files.yaml",),
    "vcd": ("lstmsim.analysis.files",),
    "onnx": ("lstmsim.importers",),
    "google": ("lstmsim.importers",),
    "h5py": ("lstmsim.importers",),
    "optuna": ("lstmsim.studies.design",),
    "pyarrow": ("lstmsim.studies.sweep",),
    "distributed": ("lstmsim.studies.sweep",),
    "perfetto": ("lstmsim.analysis.files",),
    "pylibfst": ("lstmsim.analysis.files",),
    "pandas": ("lstmsim.report",),
    "polars": ("lstmsim.report",),
}

FILE_LINES, FUNCTION_LINES = 600, 60
#: The same for native sources, whose lines are denser.
CORE_FILE_LINES, CORE_FUNCTION_LINES = 300, 50


def module_name(path: Path) -> str:
    parts = ("lstmsim", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """The trees of all modules. The garbage collector would take three times as long as the parser, for nothing."""
    gc.disable()
    parsed = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    gc.freeze()
    gc.enable()
    return parsed


def tree(name: str) -> ast.Module:
    return trees()[name]


@cache
def walked(node: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree in the order of `ast.walk`, but for `Load`, `Store` and `Del`, which others have as `ctx`.

    To walk trees costs more than most rules, and `ast.walk` takes twice as long as this.
    """
    found = [node]
    for each in found:  # it grows while it is read
        for field in each._fields:
            value = getattr(each, field, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    found.append(child)
    return tuple(found)


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """All nodes of the module's tree. The package's stub has its imports."""
    stub = FILES[name].with_suffix(".pyi")
    return (*walked(tree(name)), *(walked(ast.parse(stub.read_text(encoding="utf-8"))) if stub.is_file() else ()))


def part(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


@cache
def imported(name: str) -> tuple[str, ...]:
    """Every module that the module imports, wherever in it the import stands."""
    return tuple(imports_of(name))


def imports_of(name: str) -> Iterator[str]:
    for node in nodes(name):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else str(node.module)


def own(name: str) -> set[str]:
    return {each for each in imported(name) if each.split(".")[0] == "lstmsim"}


def in_every_room(rule: Callable[[str], None]) -> Callable[[str], None]:
    """A test for each room of the package that holds the rule for all its files and names those that break it.

    A test for each file would cost more than what it does.
    """

    @pytest.mark.parametrize("room", sorted({part(name) for name in FILES}), ids=lambda room: room or "lstmsim")
    def test(room: str) -> None:
        broken = []
        for name in FILES:
            if part(name) == room:
                try:
                    rule(name)
                except AssertionError as error:
                    broken.append(f"{name}: {error}")
        assert not broken, "\n".join(broken)

    test.__name__, test.__doc__ = rule.__name__, rule.__doc__
    return test


def rooms_used() -> dict[str, set[str]]:
    """The parts that each part imports."""
    used: dict[str, set[str]] = {part(name): set() for name in FILES}
    for name in FILES:
        used[part(name)] |= {part(each) for each in own(name)} - {part(name)}
    return used


def permission_faults(below: dict[str, set[str]], used: dict[str, set[str]]) -> list[str]:
    """What is imported and not allowed, and what is allowed and not used."""
    faults = []
    for room, imports in used.items():
        faults += [f"{room} may not import {each or 'lstmsim'}" for each in sorted(imports - below[room])]
        faults += [f"{room} does not use {each or 'lstmsim'}" for each in sorted(below[room] - imports)]
    return faults + [f"there is no {room}" for room in sorted(set(below) - set(used))]


def test_each_room_imports_what_it_is_allowed_to_and_no_permission_is_unused() -> None:
    assert permission_faults(BELOW, rooms_used()) == []
    wrong = BELOW | {"traffic": BELOW["traffic"] - {"model"} | {"engines"}, "cellar": set()}
    faults = ["traffic may not import model", "traffic does not use engines", "there is no cellar"]
    assert permission_faults(wrong, rooms_used()) == faults


def test_rooms_form_no_circles_but_those_that_are_written_down() -> None:
    used = {room: imports - ({""} if room in CIRCLES else set()) for room, imports in rooms_used().items()}
    TopologicalSorter(used).prepare()
    for room in CIRCLES:
        assert "" in BELOW[room]
        with pytest.raises(CycleError):
            TopologicalSorter(used | {room: used[room] | {""}}).prepare()


@pytest.mark.skipif(CHECKOUT is None, reason="the document is not part of the package")
def test_the_table_of_the_design_says_who_may_import_whom() -> None:
    assert CHECKOUT is not None
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]*) \|$", (CHECKOUT / "DESIGN.md").read_text(encoding="utf-8"), re.M)
    table = {room: set(re.findall(r"`(\w+)`", words)) for room, words in rows if room in BELOW}
    assert table == {room: BELOW[room] - {""} for room in table}
    assert set(table) == set(BELOW) - {"", "__main__"}


def test_no_import_cycles() -> None:
    graph = {name: own(name) - {name} for name in FILES if name != "lstmsim"}
    TopologicalSorter(graph).prepare()


def test_the_forms_of_a_result_stand_in_its_own_room() -> None:
    """A result names the module of its forms in words, so that no import shows it."""
    named = 0
    for name in FILES:
        for node in nodes(name):
            if isinstance(node, ast.ClassDef):
                for keyword in node.keywords:
                    if keyword.arg == "forms":
                        home = ast.literal_eval(keyword.value)
                        assert home in FILES, f"{name}:{node.lineno}: no module {home}"
                        assert part(home) == part(name), f"{name}:{node.lineno}: {home} is another room's"
                        assert "FORMS" in {each.id for each in nodes(home) if isinstance(each, ast.Name)}
                        named += 1
    assert named > 12


@in_every_room
def test_third_party_packages_stay_in_their_places(name: str) -> None:
    for each in imported(name):
        top = each.split(".")[0]
        if top != "lstmsim" and top not in sys.stdlib_module_names:
            assert top in THIRD_PARTY, f"{name} imports {top}, which nobody may"
            assert name.startswith(THIRD_PARTY[top]), f"{name} imports {top}"


@in_every_room
def test_no_star_imports_no_prints_nothing_unpickled_or_evaluated(name: str) -> None:
    forbidden = {"print", "eval", "exec", "breakpoint", "input"}
    # records are made as dataclasses are: `__init__` is written of the names of fields in the class
    forbidden -= {"exec"} if name == "lstmsim.base.records" else set()
    for node in nodes(name):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), f"{name}:{node.lineno}: star import"
            # to write is no danger: checksums are of such bytes
            assert node.module != "marshal" or [each.name for each in node.names] == ["dumps"]
        elif isinstance(node, ast.Import):
            assert all(alias.name != "marshal" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in forbidden, f"{name}:{node.lineno}: {node.func.id}()"
    # one module runs programs of others, and ends whatever they start
    others = set() if name == "lstmsim.base.processes" else {"subprocess"}
    assert not {"pickle", "shelve", *others} & set(imported(name))


@in_every_room
def test_files_and_functions_are_short(name: str) -> None:
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= FILE_LINES
    for node in nodes(name):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{name}:{node.lineno}: {node.name} has {lines} lines"


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """First line (from 0) and number of lines of each function of a C++ file, by its indentation."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if re.match(r" *(?!namespace|class|struct|enum|union)[^ #/].*[)\w] \{$", line):
            # arguments and a constructor's list may stand on lines of their own, further in
            indent = len(line) - len(line.lstrip()) - 4 * line.lstrip().startswith(":")
            ends = (number for number in range(start, len(lines)) if re.match(rf" {{0,{indent}}}\}}", lines[number]))
            yield start, next(ends) + 1 - start


def test_functions_of_cpp_are_measured() -> None:
    constructor = "A::A(int a)\n    : b(a) {\n    if (a) {\n        c();\n    }\n}\n"
    text = f"{constructor}\nstruct D {{\n    int e(\n            int f) {{\n        g();\n    }}\n}};\n"
    assert list(cpp_functions(text)) == [(1, 5), (2, 3), (9, 3)]


@pytest.mark.skipif(CHECKOUT is None, reason="the native sources are not part of the package")
def test_native_files_and_functions_are_short_and_say_what_they_hold() -> None:
    files = sorted(PACKAGE.rglob("*.[ch]pp"))
    assert {each.parent for each in files} == {COMMON, *cores_of(PACKAGE)}
    assert len(files) > 30
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= CORE_FILE_LINES, file.name
        assert re.match(r"// [A-Z].*[.,:]\w*", text), f"{file.name} does not begin with what it holds"
        for start, count in cpp_functions(text):
            assert count <= CORE_FUNCTION_LINES, f"{file.name}:{start + 1} has {count} lines"


@in_every_room
def test_what_is_public_has_a_docstring(name: str) -> None:
    assert ast.get_docstring(tree(name)), f"{name} has no docstring"
    for node in tree(name).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name}:{node.lineno}: {node.name} has no docstring"


#: What the folder of each machine defines: nobody else may name it.
MACHINES = {kind: home.rsplit(".", 1)[0] for kind, home in KINDS.items()}
HOMES = (*MACHINES.values(), "lstmsim.machines.registry")


def defined(name: str) -> set[str]:
    """The names of classes and values that the module defines at its top."""
    classes = {node.name for node in tree(name).body if isinstance(node, ast.ClassDef)}
    assigned = (node.targets for node in tree(name).body if isinstance(node, ast.Assign))
    return classes | {each.id for targets in assigned for each in targets if isinstance(each, ast.Name)}


@cache
def own_classes() -> set[str]:
    """Classes of machines whose names nobody else uses for something of his own."""
    own, others = (
        {each for name in FILES if name.startswith(HOMES) == inside for each in defined(name)}
        for inside in (True, False)
    )
    return {each for each in own if each[:1].isupper() and not each.isupper()} - others


KIND_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(MACHINES)})(?![\w-])")


#: A field in the docstring of a class.
_LISTED = re.compile(r"^([a-z_][a-z_0-9]*(?:, [a-z_][a-z_0-9]*)*): ", re.MULTILINE)
#: A comment that is not one on a check that is left out.
_COMMENT = re.compile(r"^(?!.*  # (?:type: ignore|noqa)).*  # ")


def fields_documented(node: ast.ClassDef, lines: list[str]) -> tuple[set[str], set[str]]:
    """The fields of a class that its docstring lists, and those with a comment."""
    fields = {
        each.target.id: each
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    entries = _LISTED.findall((ast.get_docstring(node) or "").partition(">>>")[0])
    listed = {name for entry in entries for name in entry.split(", ")} & fields.keys()
    above = {name for name, each in fields.items() if lines[each.lineno - 2].lstrip().startswith("# ")}
    return listed, above | {name for name, each in fields.items() if _COMMENT.search(lines[(each.end_lineno or 1) - 1])}


def test_documented_fields_are_recognised() -> None:
    text = (
        'class A:\n    """A.\n\n    b, c: two.\n    """\n    b: int\n    c: int\n    # e\n    d: int\n    f: int  # g\n'
    )
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    assert fields_documented(node, text.splitlines()) == ({"b", "c"}, {"d", "f"})


@in_every_room
def test_a_class_says_its_fields_in_one_place(name: str) -> None:
    """In a list in the docstring, or in comments at the fields; DESIGN.md says when which."""
    lines = FILES[name].read_text(encoding="utf-8").splitlines()
    for node in nodes(name):
        if isinstance(node, ast.ClassDef):
            listed, commented = fields_documented(node, lines)
            assert not (listed and commented), f"{name}:{node.lineno}: {node.name} lists {listed}, comments {commented}"


def docstrings(node: ast.AST) -> set[int]:
    """The constants of a module that are docstrings, or texts on their own, by identity."""
    return {id(each.value) for each in walked(node) if isinstance(each, ast.Expr)}


def named(name: str) -> Iterator[str]:
    """Where the module names a machine in its code, in words."""
    skipped = docstrings(tree(name))
    for node in nodes(name):
        word = ""
        if isinstance(node, ast.Name | ast.Attribute):
            word = node.id if isinstance(node, ast.Name) else node.attr
            word = word if word in own_classes() else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            hit = KIND_WORD.search(node.value)
            word = hit[0] if hit else next((each for each in MACHINES.values() if each in node.value), "")
        if word:
            yield f"{name}:{getattr(node, 'lineno', 0)}: {word}"
    for each in own(name):
        if each.startswith(tuple(MACHINES.values())):
            yield f"{name} imports {each}"


def test_a_machine_is_named_in_its_folder_and_in_the_registry_only() -> None:
    assert {"ColumnCore", "ColumnNpu", "RowCore", "RowNpu"} <= own_classes()
    strangers = [name for name in FILES if not name.startswith(HOMES)]
    assert len(strangers) > 300
    wrong = [each for name in strangers for each in named(name)]
    # The public face names the descriptions, for users who build chips of them.
    face = [each for each in wrong if each.startswith(("lstmsim:", "lstmsim imports"))]
    assert face
    assert wrong == face


def test_machines_do_not_know_each_other() -> None:
    for folder in MACHINES.values():
        others = tuple(each for each in MACHINES.values() if each != folder)
        wrong = {
            name: each for name in FILES if name.startswith(folder) for each in own(name) if each.startswith(others)
        }
        assert not wrong


def test_there_are_not_many_rooms() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(rooms) <= 13
    assert rooms <= set(BELOW)


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the package; in a checkout also everything beside it that people wrote."""
    folders = [PACKAGE]
    if CHECKOUT:
        names = ("docs", "tests", "experiments", "models", "benchmarks", "tools", ".ci")
        folders += [CHECKOUT / name for name in names]
        # In a worktree `.git` is a file too, which git wrote.
        beside = (path for path in CHECKOUT.glob("*.*") if path.is_file() and path.name != ".git")
        yield from ((path, path.read_text(encoding="utf-8")) for path in beside)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and b"\0" not in (content := path.read_bytes()):
                yield path, content.decode("utf-8", errors="replace")


def test_no_file_knows_this_machine() -> None:
    # Written so that the patterns do not find themselves.
    homes = "|".join(("home", "root", "work", "Users", "opt", "mnt", "tmp"))
    # Each begins with fixed letters, and looks at what is before them afterwards: such patterns are found fast.
    paths = (rf"/(?<![\w.:/>\-]/)(?:{homes})/[\w.]", r":\\(?<=[A-Z]:\\)Users")
    hosts = (r"pypi(?<=\bpypi)\b\.\w", r"pythonhosted(?<=\bpythonhosted)\b\.")
    machine = [re.compile(pattern) for pattern in (*paths, *hosts)]
    read = ((file, text, each) for file, text in texts() for each in machine)
    assert not [f"{file}: {hit[0]}" for file, text, each in read for hit in each.finditer(text)]


@in_every_room
def test_records_are_built_by_name_and_not_from_rows(name: str) -> None:
    """A field that is added must not move the others: no class is called with a row of values that is spread out."""
    for node in nodes(name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[:1].isupper():
            rows = [each for each in node.args if isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple)]
            assert not rows, f"{name}:{node.lineno}: {node.func.id}(*(...))"
