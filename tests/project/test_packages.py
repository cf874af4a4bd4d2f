"""What is in the wheel and in the source archive, and that Mino runs wherever it is installed from."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import mino

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "data" / "cases"
VERSION = mino.__version__
DEPENDENCIES = [place for place in sys.path if place.endswith("-packages")]

MODULES = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mino").rglob("*.py")}
SCHEMAS = {path.name for path in (ROOT / "schemas").iterdir()}
PAGES = {path.name for path in (ROOT / "man").iterdir()}

BUILD = """
import sys
from setuptools import build_meta
place, *kinds = sys.argv[1:]  # it changes them
for kind in kinds:
    getattr(build_meta, "build_" + kind)(place)
"""


@dataclass(frozen=True)
class Packages:
    """The packages, built from a copy of the sources in `tree`, for building leaves files there."""

    tree: Path
    wheel: Path
    archive: Path


def run(*words: str | Path, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """A command without any environment but `environ`, and without a package index."""
    environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(cwd), "PIP_NO_INDEX": "1"} | environ
    return subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False)


def build(tree: Path, place: Path, *kinds: str) -> None:
    built = run(sys.executable, "-c", BUILD, place, *kinds, cwd=tree, PYTHONPATH=os.pathsep.join(DEPENDENCIES))
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    place = tmp_path_factory.mktemp("packages")
    tree = place / "tree"
    for name in ("mino", "schemas", "man"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    build(tree, place, "wheel", "sdist")
    [wheel], [archive] = place.glob("*.whl"), place.glob("*.tar.gz")
    return Packages(tree, wheel, archive)


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """Installs into a new virtual environment that sees the dependencies of this one; the environment's `mino`."""

    def install(*what: str | Path) -> Path:
        made = run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        python = tmp_path / "venv" / "bin" / "python"
        found = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
        # A path in a .pth file is not searched for .pth files in turn: an editable Mino of this environment stays out.
        Path(found.stdout.strip(), "dependencies.pth").write_text("\n".join(DEPENDENCIES))
        options = ("--no-deps", "--no-build-isolation", "--ignore-installed", "--disable-pip-version-check")
        installed = run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what, cwd=tmp_path)
        assert installed.returncode == 0, installed.stdout + installed.stderr
        return tmp_path / "venv" / "bin" / "mino"

    return install


def names_in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as wheel:
        return set(wheel.namelist())


def check_program(*command: str | Path, cwd: Path, **environ: str) -> None:
    """The program runs, finds its schemas for both validators, and says where a record is bad."""
    environ["MINO_HOME"] = str(cwd / "home")
    assert run(*command, "--version", cwd=cwd, **environ).stdout == f"mino {VERSION}\n"
    files = [CASES / "good-two-turns.jsonl", CASES / "unknown-field.jsonl"]
    checked = run(*command, "history", "verify", *files, cwd=cwd, **environ)
    assert checked.stderr.count("\nhint: ") == 0 and checked.stderr.startswith("hint: ")
    assert checked.returncode == 65
    assert "clean: 6 records, 2 turns" in checked.stdout and "4: unknown-field:" in checked.stdout
    bad = cwd / "bad.jsonl"
    record = '{"v":1,"seq":1,"type":"user_message","turn_id":"%s","text":"?"}\n'
    bad.write_text(record % ("a" * 32) + record % "x")
    explained = run(*command, "history", "verify", bad, cwd=cwd, **environ)
    assert "bad-turn-id" in explained.stdout and explained.returncode == 65


def test_the_wheel_holds_the_program_its_schemas_and_its_pages_and_nothing_else(packages: Packages) -> None:
    data = f"mino_cli-{VERSION}.data/data/share/man"
    names = names_in_wheel(packages.wheel)
    assert {name for name in names if ".dist-info/" not in name} == {
        *MODULES,
        *(f"mino/schemas/{name}" for name in SCHEMAS),
        *(f"{data}/man{page[-1]}/{page}" for page in PAGES),
    }
    with zipfile.ZipFile(packages.wheel) as wheel:
        for name in SCHEMAS:
            assert wheel.read(f"mino/schemas/{name}") == (ROOT / "schemas" / name).read_bytes()
        assert b"mino = mino.__main__:main" in wheel.read(f"mino_cli-{VERSION}.dist-info/entry_points.txt")


def test_the_source_archive_holds_what_the_wheel_is_made_of(packages: Packages, tmp_path: Path) -> None:
    assert run("tar", "-xzf", packages.archive, cwd=tmp_path).returncode == 0
    tree = tmp_path / f"mino_cli-{VERSION}"
    assert {path.name for path in (tree / "schemas").iterdir()} == SCHEMAS
    assert {path.name for path in (tree / "man").iterdir()} == PAGES
    build(tree, tmp_path, "wheel")
    [wheel] = tmp_path.glob("*.whl")
    assert names_in_wheel(wheel) == names_in_wheel(packages.wheel)


def test_the_program_runs_from_a_wheel(packages: Packages, install: Callable[..., Path], tmp_path: Path) -> None:
    program = install(packages.wheel)
    check_program(program, cwd=tmp_path)
    manual = program.parent.parent / "share" / "man"
    assert {path.name for path in manual.rglob("*.[15]")} == PAGES


def test_the_program_runs_from_an_editable_install(
    packages: Packages, install: Callable[..., Path], tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(packages.tree, tree)
    program = install("-e", tree)
    check_program(program, cwd=tmp_path)
    # It is the tree itself that runs, and the schemas of the tree that count.
    (tree / "mino" / "__init__.py").write_text('"""Mino."""\n__version__ = "edited"\n')
    assert run(program, "--version", cwd=tmp_path).stdout == "mino edited\n"


def test_the_program_runs_in_a_plain_checkout(packages: Packages, tmp_path: Path) -> None:
    python = (sys.executable, "-S", "-m", "mino")  # without site-packages, where Mino may be installed too
    check_program(*python, cwd=tmp_path, PYTHONPATH=os.pathsep.join([str(packages.tree), *DEPENDENCIES]))
