"""Where the rig lives: one environment and one set of models per content of the files that make them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = (HERE / "requirements.txt", HERE / "requirements-nodeps.txt")
MODEL_MAKERS = (HERE / "make_models.py", HERE / "tiny_tokenizer.py", HERE / "vocabulary.json")
STUBS = HERE / "stubs"
SGLANG_VERSION = "0.5.23"
DONE_MARKER = ".specscope-complete"


def cache_folder() -> Path:
    """Return the user's cache folder of the project (it need not exist)."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "specscope"


def venv_folder() -> Path:
    """Return the environment to use: ``SPECSCOPE_RIG_VENV``, else one named after its requirements."""
    chosen = os.environ.get("SPECSCOPE_RIG_VENV")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return cache_folder() / f"sglang-cpu-venv-{fingerprint(REQUIREMENTS)}"


def models_folder() -> Path:
    """Return the folder of the tiny models, named after what makes them."""
    return cache_folder() / f"sglang-cpu-models-{fingerprint(MODEL_MAKERS)}"


def rig_python(venv: Path) -> Path:
    """Return the interpreter of that environment (it need not exist)."""
    return venv / "bin" / "python"


def fingerprint(files: tuple[Path, ...]) -> str:
    """Return 12 hexadecimal digits that change when the content of any of the files does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def complete(folder: Path) -> bool:
    """Return whether whatever fills that folder came to its end."""
    return (folder / DONE_MARKER).is_file()


def serving_environment() -> dict[str, str]:
    """Return the variables of a process of the rig: no model hub, stand-in kernels, one thread."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SGLANG_", "PROMETHEUS_", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "COV_"))
    }
    return inherited | {
        "SGLANG_USE_CPU_ENGINE": "1",
        "CUDA_VISIBLE_DEVICES": "",  # the same engine on a machine that has a GPU
        "PYTHONPATH": str(STUBS),
        "PYTHONWARNINGS": "ignore",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # else a C++ compiler and Python's headers are needed
    }


def one_thread() -> dict[str, str]:
    """Return the variables of a process that computes while other tests run.

    Threads of torch wait for each other by spinning: beside other work, two take four times the processor.
    """
    return {**os.environ, "OMP_NUM_THREADS": "1"}
