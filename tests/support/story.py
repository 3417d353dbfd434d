"""A team's story on a real model: an engine with a fault of the capture under one name, then the next one.

The product watches one address. Engines with the probe follow each other there; each pushes its state
profiles itself, and is told from the one before by its launch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.real_model import install
from tests.real_model.situations import PLUGIN, Switch
from tests.sglang_cpu import environment
from tests.support.probe import variables
from tests.support.real_model import RealModel
from tests.support.rig import RunningRig
from tests.support.states import sampling_all

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/real_model"
SERVER = "story"


FORMATS = ("specforge", "safetensors", "modelopt")
"""Other ways in which trainers keep the same states."""


@dataclass(frozen=True, slots=True)
class References:
    """Files to compare with."""

    files: Mapping[str, Path]
    """``right``: of the training data; one of each of `FORMATS`; ``swapped``: of its slots in another order;
    ``boundaries``: of all boundaries."""
    token_ids: Path
    rows: Path
    """Rows of training texts at all boundaries, for paired replays."""

    def upload(self, product: str) -> dict[str, int]:
        """Store them on a server; return their ids. The right one is the newest of the training data."""
        return {name: upload(product, path, name) for name, path in self.files.items()}


def make_references(model: RealModel, folder: Path, formats: Sequence[str] = FORMATS) -> References:
    """Profile the target's training data as a user does; where torch is needed, with the rig's Python."""
    dump, python, written = model.dump(), str(model.rig.python), folder / "rewritten"
    names = ("swapped", *formats, "right", "boundaries")
    files = {name: folder / f"{name}.reference.json.gz" for name in names}
    token_ids, rows = folder / "token-ids.json", folder / "training.rows.npz"
    weights = ["--norm-weight", str(model.target / "model.safetensors")]
    specscope("reference", "build", str(dump), "--name", "right", "--out", str(files["right"]), *weights)
    token_ids.write_text(specscope("reference", "token-ids", str(files["right"])))
    paths = [model.target, dump, files["boundaries"], token_ids, rows]
    run([python, str(HERE / "replay.py"), *map(str, paths)], PYTHONPATH=str(ROOT / "collectors"))
    ways = {"swapped": "reordered", **{name: name for name in formats}}
    run([python, str(HERE / "rewrite.py"), *map(str, (dump, written, model.target)), *ways.values()])
    for name, way in ways.items():
        options = ["--name", name, "--out", str(files[name]), "--token-ids", str(token_ids), *weights]
        specscope("reference", "build", str(written / way), *options)
    return References(files, token_ids, rows)


def specscope(*arguments: str, statuses: Collection[int] = (0,)) -> str:
    """Return what a command of the product prints."""
    return run([sys.executable, "-m", "specscope", *arguments], statuses)


def run(command: list[str], statuses: Collection[int] = (0,), **more: str) -> str:
    """Return what a command prints; it must end with one of these statuses."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    outcome = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**kept, "OMP_NUM_THREADS": "1", **more}
    )
    assert outcome.returncode in statuses, outcome.stdout[-2000:] + outcome.stderr[-3000:]
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


def probing(
    site: Path, folder: Path, product: str, token_ids: Path, window_seconds: float = 1.0
) -> dict[str, str]:
    """Return what lets the probe of an engine measure everything and push it to the product."""
    prefix = "SPECSCOPE_PROBE_STATES_"
    names = (prefix + "WINDOW_SECONDS", prefix + "FIRST_WINDOW_SECONDS")
    return variables(
        site, folder,
        **sampling_all(folder / "spool") | dict.fromkeys(names, str(window_seconds)),
        SPECSCOPE_PROBE_SERVER=product,
        SPECSCOPE_PROBE_SERVER_NAME=SERVER,
        SPECSCOPE_PROBE_TOKEN_IDS=str(token_ids),
        SPECSCOPE_PROBE_REPLAY="1",
    )  # fmt: skip


def engine(
    model: RealModel, fault: str, folder: Path, variables_: dict[str, str], port: int | None = None,
    switch: Switch | None = None,
) -> RunningRig:  # fmt: skip
    """Return an engine of the real model, not started; with a port it follows another one there.

    ``fault`` is one of its head; ``switch`` changes it while it runs.
    """
    more: dict[str, Any] = {"target": model.target, "draft": model.head(fault, folder)}
    extra = ["--enable-return-hidden-states"]
    if port is not None:
        more["port"] = port
    if switch is not None:
        switch.to("as_started")
        paths = [variables_["PYTHONPATH"], str(PLUGIN)]
        variables_ = {**variables_, **switch.variables, "PYTHONPATH": os.pathsep.join(paths)}
        extra += switch.arguments
    log_path = folder / f"engine-{fault}.log"
    return RunningRig(model.rig, log_path, "eagle3", 3, extra, variables_, **more)


def is_installed() -> bool:
    """Say whether the target is there without making it."""
    name = f"real-target-{environment.fingerprint(install.TARGET_MAKERS)}"
    return environment.complete(environment.cache_folder() / name)
