"""Samples as each training tool lays them out, of one made-up model: H = 16, n = 8 layers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.dumps import bfloat16, safetensors_bytes, tensor, torch_bytes, widened, write

H, LAYERS = 16, 8
SCALES = (1.0, 8.0, 60.0, 200.0)
"""Of the three slots and the last state."""
WEIGHT = np.linspace(0.5, 2.0, H).astype(np.float32)
"""Of the final norm."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Made:
    """One request."""

    ids: NDArray[np.int64]
    mask: NDArray[np.int64]
    states: tuple[Floats, ...]
    """Three slots and the last, pre-norm state, each [T, H], as bfloat16 has them."""

    @property
    def aux(self) -> Floats:
        return np.concatenate(self.states[:3], axis=1)

    @property
    def last(self) -> Floats:
        return self.states[3]

    @property
    def normed(self) -> Floats:
        return normed(self.last)


def normed(states: Floats) -> Floats:
    """Return states after the final norm (RMSNorm)."""
    rms = np.sqrt((states.astype(np.float64) ** 2).mean(axis=1, keepdims=True))
    return (states / rms * WEIGHT).astype(np.float32)


def made(index: int, tokens: int = 40) -> Made:
    """Return a request: the first position is a massive activation behind slot 0."""
    random = np.random.default_rng([7, index])
    ids = random.integers(3, 30, tokens)
    towards = np.random.default_rng(5).normal(size=(30, 4, H))
    states = []
    for place, scale in enumerate(SCALES):
        values = (towards[ids, place] + random.normal(size=(tokens, H))) * scale
        if place:
            values[0] *= 1000
        states.append(widened(bfloat16(values)))
    mask = (np.arange(tokens) >= tokens // 2).astype(np.int64)
    return Made(ids, mask, tuple(states))


def specforge(request: Made) -> bytes:
    return torch_bytes(
        {"input_ids": tensor(request.ids), "loss_mask": tensor(request.mask),
         "hidden_state": tensor(request.normed[None]), "aux_hidden_state": tensor(request.aux[None])}
    )  # fmt: skip


def specforge_dspark(request: Made) -> bytes:
    return torch_bytes(
        {"input_ids": tensor(request.ids), "loss_mask": tensor(request.mask),
         "hidden_states": tensor(request.aux[None]), "target_last_hidden_states": tensor(request.last[None])}
    )  # fmt: skip


def speculators_v0(request: Made) -> bytes:
    return torch_bytes(
        {"hidden_state": tensor(request.aux), "target": tensor(request.normed),
         "input_ids": tensor(request.ids), "loss_mask": tensor(request.mask)}
    )  # fmt: skip


def speculators_v1(request: Made) -> bytes:
    states = [tensor(each) for each in request.states]
    return torch_bytes(
        {"input_ids": tensor(request.ids), "hidden_states": states, "loss_mask": tensor(request.mask)}
    )


def speculators(request: Made) -> bytes:
    layers = np.stack(request.states, axis=1)
    return safetensors_bytes(
        {"hidden_states": tensor(layers), "token_ids": tensor(request.ids)}, {"format": "pt"}
    )


def eagle(request: Made) -> bytes:
    return torch_bytes(
        {"input_ids": tensor(request.ids), "hidden_state": tensor(request.normed, "float16"),
         "loss_mask": tensor(request.mask)}
    )  # fmt: skip


def baldeagle(request: Made) -> bytes:
    return torch_bytes(
        {"input_ids": tensor(request.ids), "loss_mask": tensor(request.mask),
         "hidden_state": tensor(request.aux[None]), "target_hidden_states": tensor(request.normed[None])}
    )  # fmt: skip


def modelopt(request: Made, prenorm: bool | None = None) -> bytes:
    tree: dict[str, Any] = {
        "input_ids": tensor(request.ids), "hidden_states": tensor(request.last),
        "aux_hidden_states": tensor(request.aux), "conversation_id": "chat-17",
        "loss_mask": tensor(request.mask),
    }  # fmt: skip
    return torch_bytes(tree if prenorm is None else {**tree, "hidden_states_prenorm": prenorm})


def angelslim(request: Made) -> bytes:
    return torch_bytes(
        {"input_ids": tensor(request.ids[None]), "loss_mask": tensor(request.mask[None]),
         "hidden_states": tensor(request.aux[None]), "target_hiddens": tensor(request.last[None])}
    )  # fmt: skip


@dataclass(frozen=True)
class Format:
    """How one tool lays a dump out."""

    content: Callable[[Made], bytes]
    name: Callable[[int], str]
    tool: str
    slots: int = 3
    last: str | None = "unknown"
    """What is known of the last state without a weight."""
    is_normed: bool = False
    has_mask: bool = True
    needs_size: bool = False


def _gzipped(request: Made) -> bytes:
    return gzip.compress(specforge(request), 1)


FORMATS: dict[str, Format] = {
    "SpecForge, groups of 5000": Format(
        specforge, lambda i: f"rows_{i // 5000 * 5000}-{i // 5000 * 5000 + 5000}/data_{i}.ckpt", "SpecForge",
        last="post_norm", is_normed=True,
    ),
    "SpecForge, clipped end and gaps": Format(
        specforge, lambda i: f"rows_{0 if i < 9 else 2000}-{2000 if i < 9 else 2137}/data_{3 * i}.ckpt",
        "SpecForge", last="post_norm", is_normed=True,
    ),
    "SpecForge, gzip": Format(
        _gzipped, lambda i: f"rows_0-2000/data_{i}.ckpt.gz", "SpecForge", last="post_norm", is_normed=True
    ),
    "SpecForge, dspark": Format(
        specforge_dspark, lambda i: f"rows_0-2000/data_{i}.ckpt", "SpecForge (dflash, domino, dspark)"
    ),
    "speculators v0": Format(
        speculators_v0, lambda i: f"sample{i}.pt", "speculators v0", last="post_norm", is_normed=True
    ),
    "speculators v1": Format(
        speculators_v1, lambda i: f"data_{i}.pt", "speculators 0.3–0.4", last="pre_norm"
    ),
    "speculators 0.5": Format(
        speculators, lambda i: f"hidden_states/hs_{i}.safetensors", "speculators 0.5 or newer (vLLM)",
        last="pre_norm", has_mask=False,
    ),
    "EAGLE": Format(
        eagle, lambda i: f"{i % 3}/data_{i // 3}.ckpt", "EAGLE", slots=0, last="post_norm", is_normed=True,
        needs_size=True,
    ),
    "BaldEagle": Format(
        baldeagle, lambda i: f"{i}.ckpt", "BaldEagle", last="post_norm", is_normed=True
    ),
    "ModelOpt": Format(modelopt, lambda i: f"conversation-{i}.pt", "ModelOpt"),
    "ModelOpt, pre-norm": Format(
        lambda request: modelopt(request, True), lambda i: f"c{i}.pt", "ModelOpt", last="pre_norm"
    ),
    "AngelSlim": Format(angelslim, lambda i: f"rows_0-5000/data_{i}.ckpt", "AngelSlim"),
    "hybrid": Format(
        speculators_v1, lambda i: f"rows_{i // 10 * 2000}-{i // 10 * 2000 + 2000}/data_{i % 10}.pt",
        "speculators' files in SpecForge's folders", last="pre_norm",
    ),
}  # fmt: skip


def write_dump(root: Path, layout: Format, requests: int = 20, tokens: int = 40) -> Path:
    """Write a dump."""
    for index in range(requests):
        write(root / layout.name(index), layout.content(made(index, tokens)))
    return root


def config_v1(root: Path, layer_ids: list[int]) -> None:
    """Write the manifest of speculators v1."""
    found = {
        "version": "2.0", "speculators_version": "0.4.0",
        "model": {"target_model_path": "org/model", "hidden_size": H},
        "hidden_states": {"layer_ids": layer_ids, "description": "in order of layer_ids"},
        "format": {"file_pattern": "data_{idx}.pt", "data_format_version": 1},
    }  # fmt: skip
    (root / "data_config.json").write_text(json.dumps(found))


def config_of_our_own(root: Path) -> None:
    """Write a manifest that names boundaries."""
    found = {
        "hidden_size": H,
        "num_hidden_layers": LAYERS,
        "boundaries": [2, 4, 5],
        "target_model_path": "org/m",
    }
    (root / "data_config.json").write_text(json.dumps(found))
