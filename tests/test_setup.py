"""Setting up on a stranger's machine: which Python is taken, what is said otherwise, what `make` offers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def program(folder: Path, name: str, text: str) -> None:
    """Write an executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def own_environment() -> dict[str, str]:
    """Return the environment without what a `make test` above this process left in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def find_python(path: str) -> str:
    """Return what the set-up would choose with that PATH."""
    command = ["/bin/sh", str(ROOT / "scripts" / "find-python")]
    return subprocess.run(
        command, capture_output=True, text=True, env={"PATH": path}, check=True
    ).stdout.strip()


def test_a_python_that_does_not_run_or_is_too_old_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path, "python3", "exit 1")  # an old one says no, a version manager's shim fails
    program(tmp_path, "python3.13", "echo no such version >&2; exit 127")
    program(tmp_path, "python3.12", f'exec "{sys.executable}" "$@"')
    assert find_python(str(tmp_path)) == str(tmp_path / "python3.12")


def test_no_python_is_an_empty_answer_and_make_says_what_to_do(tmp_path: Path) -> None:
    assert find_python(str(tmp_path)) == ""
    command = ["make", "--dry-run", "setup", "PYTHON=", f"VENV={tmp_path / 'venv'}"]
    outcome = subprocess.run(
        command, cwd=ROOT, env=own_environment(), capture_output=True, text=True, check=False
    )
    assert outcome.returncode != 0
    assert "no Python >= 3.11 found on PATH" in outcome.stderr


def test_a_python_without_ensurepip_is_told_what_to_install(tmp_path: Path) -> None:
    hide = (
        "import runpy, sys; sys.modules['ensurepip'] = None; "
        f"sys.argv = ['bootstrap.py', '--venv', {str(tmp_path / 'venv')!r}]; "
        f"runpy.run_path({str(ROOT / 'scripts' / 'bootstrap.py')!r}, run_name='__main__')"
    )
    outcome = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    assert f"apt-get install python3.{sys.version_info.minor}-venv" in outcome.stderr
    assert not (tmp_path / "venv").exists()


def test_make_alone_lists_every_word() -> None:
    shown = subprocess.run(
        ["make"], cwd=ROOT, env=own_environment(), capture_output=True, text=True, check=True
    ).stdout
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony
    for word in phony[1].split():
        assert re.search(rf"^  make {word} +\S", shown, re.MULTILINE), word


def test_every_dependency_is_pinned() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    ranges = re.findall(
        r'^    "([a-z-]+)(?:\[[a-z]+\])?[<>=]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    optional = {"torch", "sglang"}  # extras that the tests do not install
    pinned = {name.lower().replace("_", "-") for name in pins}
    assert set(ranges) - optional <= pinned


def test_the_scripts_can_be_run() -> None:
    for name in ("scripts/find-python", ".ci/run"):
        assert os.access(ROOT / name, os.X_OK), name


@pytest.mark.xdist_group("together")
def test_groups_of_tests_stay_in_one_process(request: pytest.FixtureRequest) -> None:
    """Some versions of pytest and xdist ignore groups without a word: every process then starts engines."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@together")
