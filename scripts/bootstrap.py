"""Make the virtual environment and put the product into it.

Standard library only: this runs before anything is there.

    python3 scripts/bootstrap.py --venv .venv [--dev]

Exit status 1 with one sentence that says what to do when this Python cannot make a virtual environment.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
MINIMUM = (3, 11)


def main() -> int:
    """Set up and return the exit status."""
    arguments = parse_arguments()
    trouble = python_trouble()
    if trouble:
        print(f"set-up: {trouble}", file=sys.stderr)
        return 1
    python = make_environment(arguments.venv)
    install(python, dev=arguments.dev)
    fetch_chart_library(python)
    return 0


def parse_arguments() -> argparse.Namespace:
    """Return ``venv`` (path) and ``dev`` (whether the developers' tools are wanted)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--dev", action="store_true", help="also install what tests and checks need")
    return parser.parse_args()


def python_trouble() -> str | None:
    """Say why this interpreter cannot be used, or return None."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MINIMUM:
        return (
            f"Python {version} is too old, 3.11 or newer is needed; give one: make PYTHON=/path/to/python3.12"
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        return (
            f"{sys.executable} cannot make a virtual environment (its module ensurepip is packaged apart); "
            f"on Debian or Ubuntu: apt-get install {package}"
        )
    return None


def make_environment(folder: Path) -> Path:
    """Create the environment unless its interpreter runs already; return the interpreter."""
    python = folder / "bin" / "python"
    if not runs(python):
        run([sys.executable, "-m", "venv", "--clear", str(folder)])
    return python.absolute()


def runs(python: Path) -> bool:
    """Return whether that interpreter starts, is new enough and has pip."""
    probe = f"import sys, pip; sys.exit(sys.version_info < {MINIMUM})"
    try:
        return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def install(python: Path, *, dev: bool) -> None:
    """Install the product from this checkout, editable, at the versions it is tested with."""
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    run([*pip, "--upgrade", "pip>=25.1"])  # the first pip that reads dependency groups
    wanted = ["--constraint", str(CONSTRAINTS), "--editable", f"{ROOT}[server,postgres]"]
    run([*pip, *wanted, "--group", f"{ROOT / 'pyproject.toml'}:{'dev' if dev else 'assets'}"])


def fetch_chart_library(python: Path) -> None:
    """Fetch the small chart bundle; without it the pages use the plotly package's whole one, so go on."""
    if status([str(python), str(ROOT / "scripts" / "fetch_plotly.py")]) != 0:
        print("set-up: the small chart bundle could not be fetched; the pages use the full one")


def run(command: list[str]) -> None:
    """Run one command; stop the set-up when it fails."""
    code = status(command)
    if code != 0:
        raise SystemExit(f"set-up: this command failed (exit status {code}): {' '.join(command)}")


def status(command: list[str]) -> int:
    """Show one command, run it in the checkout and return its exit status."""
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
