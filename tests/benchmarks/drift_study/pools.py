"""Which requests there are, and their states, made once by the rig's Python and kept in the user's cache."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.benchmarks.drift_study import texts
from tests.real_model import install
from tests.sglang_cpu import environment
from tests.sglang_cpu.install import ensure

HERE = Path(__file__).resolve().parent
MAKERS = (HERE / "make_states.py", HERE / "texts.py", HERE / "pools.py", *install.TARGET_MAKERS)
COLLECTORS = HERE.parents[2] / "collectors"

TRAINED, SERVED, UNSEEN = 96, 64, 48
TRAINED_ROWS, SERVED_ROWS = 64, 48
SEEN_DOMAINS = ("prose", "code", "chat")
CHOSE = ("chat about code", "html", "json")
"""Kinds of text, unseen by the reference, on which the rule was chosen (with `SEEN_DOMAINS`; other draws)."""
LIMITED = ("shortest chats", "manual", "foreign", "headers", "perl", "javascript", "xml", "other tongues")
"""Kinds on which it was tested then, and limited to neighbours of the trained boundary."""
HELD_OUT = ("vim", "locales", "more tongues")
"""Kinds that were made and counted when all of that was fixed."""
UNSEEN_DOMAINS = (
    "chat about code", "shortest chats", "html", "json", "manual", "foreign", "headers", "perl", "javascript",
    "xml", "other tongues", *HELD_OUT,
)  # fmt: skip
QUANTISED = ("bf16", "int8", "fp8", "int4")


@dataclass(frozen=True)
class Pool:
    """States of the requests of one domain."""

    name: str
    path: Path

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """``states`` (rows, boundaries, H), ``ids``, ``positions``, ``requests``."""
        with np.load(self.path) as found:
            return dict(found)


def plan() -> dict[str, list[dict[str, Any]]]:
    """Return what is to be made. No served text is in a reference."""
    pools: list[dict[str, Any]] = []
    for domain in SEEN_DOMAINS:
        kind, found = _asked(domain, TRAINED + SERVED)
        pools += [
            {"name": f"trained {domain}", kind: found[:TRAINED], "rows": TRAINED_ROWS, "variants": ["bf16"]},
            {"name": domain, kind: found[TRAINED:], "rows": SERVED_ROWS, "variants": QUANTISED},
        ]
    for domain in UNSEEN_DOMAINS:
        kind, found = _asked(domain, UNSEEN)
        pools.append({"name": domain, kind: found, "rows": SERVED_ROWS, "variants": ["bf16"]})
    return {"pools": pools}


def _asked(domain: str, count: int) -> tuple[str, list[str]]:
    if domain in texts.SOURCES:
        return "texts", texts.documents(domain, count)
    return "questions", texts.questions(domain)[:count]


def ensure_states() -> Path:
    """Return the folder of all states, made now (half an hour) if it is not there."""
    folder = environment.cache_folder() / f"drift-study-{environment.fingerprint(MAKERS)}"
    if not environment.complete(folder):
        rig = ensure()
        target = install.ensure_target(rig)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(plan()))
        command = [
            str(rig.python),
            str(HERE / "make_states.py"),
            str(target),
            str(folder / "plan.json"),
            str(folder),
        ]
        own = environment.serving_environment()
        subprocess.run(command, check=True, env=own | {"PYTHONPATH": str(COLLECTORS)})
        (folder / environment.DONE_MARKER).touch()
    return folder


def pool(folder: Path, name: str, variant: str = "bf16") -> Pool:
    """Return one pool."""
    return Pool(name, folder / f"{name}-{variant}.npz")
