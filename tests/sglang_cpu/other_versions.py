"""Other versions of SGLang beside the rig's: their Python alone, for tests of what does not need kernels.

Each is installed without dependencies into a folder of the cache (5–10 s, 40–170 MB) that goes in front of
the rig's environment. They import on a CPU with the rig's stubs; the rig's own version and 0.5.20 serve.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.sglang_cpu import environment, install

OTHER_VERSIONS = ("0.5.20", "0.5.15", "0.5.8")


def ensure_version(version: str) -> Path:
    """Return the folder that holds that version, installed now if it is not there. Raises RigMissingError."""
    folder = environment.cache_folder() / f"sglang-{version}"
    with install.one_at_a_time(folder):
        if not environment.complete(folder):
            make(version, folder)
    return folder


def ensure_all() -> None:
    """Install every version that is not there yet. Raises RigMissingError."""
    for version in OTHER_VERSIONS:
        ensure_version(version)


def make(version: str, folder: Path) -> None:
    """Install beside the place and move it there whole."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    python = environment.rig_python(environment.venv_folder())
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    install.run([*pip, "--target", str(unfinished), f"sglang=={version}"])
    (unfinished / environment.DONE_MARKER).touch()
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
