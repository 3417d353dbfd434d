"""Fixtures of a real model with a trained EAGLE-3 head on the rig (see `tests/real_model`).

`real_model` gives its files; `real_engine` starts a server on it: right, or with a fault of the capture.
Mark the tests with ``rig`` and ``xdist_group("rig")``, as all that start engines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from tests.real_model import install
from tests.real_model.faults import faulty_head
from tests.sglang_cpu.install import Rig, RigMissingError
from tests.support.rig import Answer, RunningRig

LAYERS, HIDDEN = 30, 576
BOUNDARIES = (2, 15, 27)
"""What the head was trained on, by slot."""
FAULTS: dict[str, dict[str, Sequence[int]]] = {
    "right": {},
    "too_deep": {"ids": (2, 15, 27)},
    "too_shallow": {"ids": (0, 13, 25)},
    "embedding": {"ids": (-1, 1, 14)},
    "swapped": {"slots": (2, 1, 0)},
}
"""Ids read as boundaries, one layer too early, the embedding in slot 0, the head's slots in another order."""


@dataclass(frozen=True, slots=True)
class RealModel:
    """Where its files are."""

    rig: Rig
    target: Path

    def prompts(self, count: int | None = None) -> list[str]:
        """Return texts that the head was not trained on, at most 40."""
        texts: list[str] = json.loads(install.HELD_OUT_PROMPTS.read_text(encoding="utf-8"))
        return texts[:count]

    def head(self, fault: str, folder: Path) -> Path:
        """Return the head, or a copy of it with one of `FAULTS` in `folder`."""
        if fault not in FAULTS:
            raise ValueError(f"there is no fault {fault!r}; use one of {', '.join(FAULTS)}")
        return faulty_head(folder / f"head-{fault}", **FAULTS[fault]) if FAULTS[fault] else install.HEAD

    def dump(self) -> Path:
        """Return a folder of the target's training data: 64 texts with the states of `BOUNDARIES`."""
        return install.ensure_dump(self.rig)


def ask(running: RunningRig, prompts: Sequence[str], tokens: int, concurrency: int = 4) -> list[Answer]:
    """Return greedy answers, in the order of the prompts; each may end before `tokens`."""
    with httpx.Client(base_url=running.base_url, timeout=300.0) as client:

        def one(prompt: str) -> Answer:
            body = {"text": prompt, "sampling_params": {"temperature": 0, "max_new_tokens": tokens}}
            answer: Answer = client.post("/generate", json=body).raise_for_status().json()
            return answer

        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(one, prompts))


@pytest.fixture(scope="session")
def real_model(installed_rig: Rig) -> RealModel:
    """The model's files, made on first use; skipped with a reason, or failed in CI, as the rig itself."""
    try:
        return RealModel(installed_rig, install.ensure_target(installed_rig))
    except RigMissingError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"no real model for the tests: {reason}")
        pytest.skip(f"no real model for the tests: {reason}")


class RealEngineFactory(Protocol):
    """Starts an engine that ends with the test module."""

    def __call__(
        self, fault: str = "right", variables: Mapping[str, str] | None = None, extra: Sequence[str] = ()
    ) -> RunningRig: ...


@pytest.fixture(scope="module")
def real_engine(
    real_model: RealModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealEngineFactory]:
    """Start engines of the real model: `real_engine("embedding", variables={…})`; EAGLE-3, K = 3.

    Stop one before you start another: each takes 1.5 GB.
    """
    started: list[RunningRig] = []
    folder = tmp_path_factory.mktemp("real-engine")

    def start(
        fault: str = "right", variables: Mapping[str, str] | None = None, extra: Sequence[str] = ()
    ) -> RunningRig:
        more: dict[str, Any] = {"target": real_model.target, "draft": real_model.head(fault, folder)}
        log_path = folder / f"engine-{len(started)}.log"
        running = RunningRig(real_model.rig, log_path, "eagle3", 3, extra, dict(variables or {}), **more)
        started.append(running)
        running.start()
        return running

    yield start
    for running in started:
        running.stop()
