"""A team's story on a real model: an engine with a fault of the capture under one name, then the next one.

The product watches one address. Engines with the probe follow each other there; each pushes its state
profiles itself, and is told from the one before by its launch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.real_model import install
from tests.sglang_cpu import environment
from tests.support.probe import variables
from tests.support.real_model import RealModel, ask
from tests.support.rig import Answer, RunningRig
from tests.support.states import sampling_all

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/real_model"
SERVER = "story"
WINDOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class References:
    """Files to compare with: of the training data, of all boundaries, of the slots in another order."""

    right: Path
    boundaries: Path
    swapped: Path
    token_ids: Path


def make_references(model: RealModel, folder: Path) -> References:
    """Profile the target's training data as a user does; where torch is needed, with the rig's Python."""
    dump, python = model.dump(), str(model.rig.python)
    files = {name: folder / f"{name}.reference.json.gz" for name in ("right", "boundaries", "swapped")}
    token_ids = folder / "token-ids.json"
    specscope("reference", "build", str(dump), "--name", "right", "--out", str(files["right"]))
    token_ids.write_text(specscope("reference", "token-ids", str(files["right"])))
    paths = [model.target, dump, files["boundaries"], token_ids]
    run([python, str(HERE / "replay.py"), *map(str, paths)], PYTHONPATH=str(ROOT / "collectors"))
    reordered = folder / "reordered-dump"
    run([python, str(HERE / "reorder.py"), str(dump), str(reordered), "2", "1", "0"])
    options = ["--name", "swapped", "--out", str(files["swapped"]), "--token-ids", str(token_ids)]
    specscope("reference", "build", str(reordered), *options)
    return References(**files, token_ids=token_ids)


def specscope(*arguments: str) -> str:
    """Return what a command of the product prints."""
    return run([sys.executable, "-m", "specscope", *arguments])


def run(command: list[str], **more: str) -> str:
    """Return what a command prints; it must succeed."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    outcome = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**kept, "OMP_NUM_THREADS": "1", **more}
    )
    assert outcome.returncode == 0, outcome.stdout[-2000:] + outcome.stderr[-3000:]
    return outcome.stdout


def upload(product: str, path: Path, name: str) -> int:
    """Store a reference on a server; return its id."""
    answer = httpx.post(
        f"{product}/api/v1/references", params={"name": name}, content=path.read_bytes(), timeout=60.0,
        headers={"content-type": "application/gzip"},
    )  # fmt: skip
    assert answer.status_code in (httpx.codes.OK, httpx.codes.CREATED), answer.text
    receipt: dict[str, Any] = answer.json()
    return int(receipt["id"])


def probing(site: Path, folder: Path, product: str, token_ids: Path) -> dict[str, str]:
    """Return what lets the probe of an engine measure everything and push it to the product."""
    return variables(
        site, folder,
        **sampling_all(folder / "spool"),
        SPECSCOPE_PROBE_SERVER=product,
        SPECSCOPE_PROBE_SERVER_NAME=SERVER,
        SPECSCOPE_PROBE_TOKEN_IDS=str(token_ids),
    )  # fmt: skip


@dataclass
class Chapter:
    """One engine, what it was asked, and what it answered itself."""

    running: RunningRig
    answers: list[Answer] = field(default_factory=list)

    def serve(self, prompts: Sequence[str], tokens: int, concurrency: int = 4) -> None:
        """Send prompts and keep the answers; at the end the window of states is closed."""
        self.answers += ask(self.running, prompts, tokens, concurrency)
        time.sleep(1.2 * WINDOW_SECONDS)
        self.answers += ask(self.running, prompts[:1], 4)

    @property
    def histogram(self) -> dict[int, int]:
        """Cycles by accepted drafts, as the answers say."""
        total: dict[int, int] = {}
        for answer in self.answers:
            for drafts, cycles in enumerate(answer["meta_info"]["spec_correct_drafts_histogram"]):
                total[drafts] = total.get(drafts, 0) + cycles
        return total

    @property
    def accept_length(self) -> float:
        """τ as counted from the histogram: drafts beyond a stop are work, too."""
        cycles = sum(self.histogram.values())
        return 1 + sum(drafts * count for drafts, count in self.histogram.items()) / cycles


def engine(
    model: RealModel, fault: str, folder: Path, variables_: dict[str, str], port: int | None = None
) -> RunningRig:
    """Return an engine of the real model, not started; with a port it follows another one there."""
    more: dict[str, Any] = {"target": model.target, "draft": model.head(fault, folder)}
    if port is not None:
        more["port"] = port
    log_path = folder / f"engine-{fault}.log"
    return RunningRig(model.rig, log_path, "eagle3", 3, (), variables_, **more)


def is_installed() -> bool:
    """Say whether the target is there without making it."""
    name = f"real-target-{environment.fingerprint(install.TARGET_MAKERS)}"
    return environment.complete(environment.cache_folder() / name)
