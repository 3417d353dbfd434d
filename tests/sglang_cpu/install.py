"""Make the rig's environment and models, once: `python -m tests.sglang_cpu.install [--or-explain]`.

A real SGLang without CUDA takes about two minutes and 2.6 GB. A run that was killed leaves no marker and is
redone; runs at the same time wait for each other. ``--or-explain`` ends with status 0 outside CI when the rig
cannot be had, after having said why (the tests that need it are then skipped and counted).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.sglang_cpu import environment

USABLE_PYTHONS = ((3, 11), (3, 12))
"""Versions for which every pinned package has a wheel."""


class RigMissingError(RuntimeError):
    """The rig cannot be had here; the message names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Rig:
    """What a server of the rig is started from."""

    python: Path
    models: Path


def ensure() -> Rig:
    """Return the rig, made now if it is not there yet. Raises RigMissingError."""
    venv, models = environment.venv_folder(), environment.models_folder()
    with one_at_a_time(venv):
        if not usable(venv):
            make_venv(venv)
    with one_at_a_time(models):
        if not environment.complete(models):
            make_models(environment.rig_python(venv), models)
    return Rig(environment.rig_python(venv), models)


def usable(venv: Path) -> bool:
    """Return whether the environment is whole. One that the user named may be of their own making."""
    if environment.complete(venv):
        return True
    installed = venv.glob(f"lib/python3*/site-packages/sglang-{environment.SGLANG_VERSION}.dist-info")
    return "SPECSCOPE_RIG_VENV" in os.environ and any(installed)


def make_venv(venv: Path) -> None:
    """Create the environment from nothing and mark it when everything is in."""
    python = find_python()
    print(f"rig: making {venv} with {python} (about 2 minutes, 2.6 GB)", flush=True)
    run([python, "-m", "venv", "--clear", str(venv)])
    pip = [
        str(environment.rig_python(venv)),
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ]
    run([*pip, "--requirement", str(environment.REQUIREMENTS[0])])
    run([*pip, "--no-deps", "--requirement", str(environment.REQUIREMENTS[1])])
    (venv / environment.DONE_MARKER).touch()


def make_models(python: Path, models: Path) -> None:
    """Write the models beside their place and move them there whole."""
    unfinished = models.with_name(models.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    run([str(python), str(environment.HERE / "make_models.py"), str(unfinished)])
    (unfinished / environment.DONE_MARKER).touch()
    shutil.rmtree(models, ignore_errors=True)
    unfinished.rename(models)


def find_python() -> str:
    """Return an interpreter that everything pinned has wheels for. Raises RigMissingError."""
    names = [f"python{major}.{minor}" for major, minor in USABLE_PYTHONS]
    for candidate in (*names, sys.executable):
        if suits(candidate):
            return candidate
    raise RigMissingError(
        f"the rig needs one of {', '.join(names)} on PATH, with the module ensurepip; on Debian 12: "
        "apt-get install python3.11-venv. Or make the environment yourself and name it in SPECSCOPE_RIG_VENV"
    )


def suits(python: str) -> bool:
    """Return whether that interpreter starts, has a usable version and can make virtual environments."""
    probe = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in {USABLE_PYTHONS})"
    try:
        return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(command: list[str]) -> None:
    """Run one step of the installation. Raises RigMissingError with the end of its output when it fails."""
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        end = (outcome.stdout + outcome.stderr).strip()[-2000:]
        raise RigMissingError(f"the rig could not be installed: {' '.join(command)} failed:\n{end}")


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold a lock beside the folder; a second process waits here."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Install, the other versions included, and return the exit status."""
    from tests.sglang_cpu.other_versions import ensure_all

    try:
        rig = ensure()
        ensure_all()
    except RigMissingError as reason:
        print(f"rig: NOT AVAILABLE: {reason}", file=sys.stderr)
        return 0 if "--or-explain" in arguments and not os.environ.get("CI") else 1
    print(f"rig: ready ({rig.python})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
