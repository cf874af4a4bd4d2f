"""The environments that the benchmark makes for itself under its cache directory: one for Mino, one a peer."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
_PATIENCE = 900.0  # seconds for one installation


class Missing(Exception):
    """Something that a row needs is not to be had here; the message says why, for the table."""


def install_mino(cache: Path) -> Path:
    """The `bin` directory of an environment with the checkout installed as `pip install .` does it. Raises Missing."""
    environment = _make(cache / "mino")
    with tempfile.TemporaryDirectory() as folder:
        # A copy: a build in the checkout would leave files there, and find those of earlier builds.
        tree = Path(folder) / "mino"
        ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
        shutil.copytree(CHECKOUT, tree, ignore=ignored)
        _run([str(environment / "bin/python"), "-m", "pip", "install", "--quiet", str(tree)])
    return environment / "bin"


def install_python(cache: Path, name: str, requirements: Sequence[str]) -> Path:
    """The `bin` directory of an environment with these packages, made on first use. Raises Missing."""
    environment = cache / name
    wanted = "\n".join(requirements)
    done = environment / "installed.txt"
    if not done.exists() or done.read_text() != wanted:
        _make(environment)
        _run([str(environment / "bin/python"), "-m", "pip", "install", "--quiet", *requirements])
        done.write_text(wanted)
    return environment / "bin"


def install_npm(cache: Path, name: str, package: str) -> Path:
    """The `node_modules` directory with this package, made on first use. Raises Missing."""
    folder = cache / name
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != package:
        npm = shutil.which("npm")
        if not npm:
            raise Missing("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        _run([npm, "install", "--silent", "--prefix", str(folder), package])
        done.write_text(package)
    return folder / "node_modules"


def _make(environment: Path) -> Path:
    if not (environment / "bin/python").exists():
        environment.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(environment)])
    return environment


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{Path(argv[0]).name} did not work: {error}") from None
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise Missing(f"it could not be installed: {lines[-1][:200] if lines else 'no message'}")
