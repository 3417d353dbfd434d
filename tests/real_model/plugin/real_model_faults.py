"""Faults of the capture that are switched while an engine runs. Imported by the engine's own Python.

The engine names it as ``--forward-hooks``; see `hook`. Every forward of the target reads the file that
``REAL_MODEL_FAULT`` names, a JSON object, all of it optional:

    layers   boundaries to capture, in ascending order
    slots    another order to hand them out in
    change   what is done to each of them: one of `CHANGES`
    bits     round the weights of the target's layers to so many bits, in groups of `GROUP`

Nothing but what is handed to the draft is changed, except by ``bits``, which change the target itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import torch

FILE = "REAL_MODEL_FAULT"
LEAST_LAYERS = 8
"""The draft has one."""
GROUP = 32
SEED = 77
CHANGES = ("un_residualed", "rotated", "post_norm", "own_norm")


def hook(config: object) -> Callable[..., Any]:
    """Hook factory for ``--forward-hooks`` with the target module ``model``."""
    switches: dict[int, Switch] = {}

    def after_forward(decoder: Any, args: tuple[Any, ...], output: Any) -> Any:
        """Change what the target hands out; the draft's decoder is left alone."""
        if len(getattr(decoder, "layers", ())) < LEAST_LAYERS:
            return None
        if id(decoder) not in switches:
            switches[id(decoder)] = Switch(decoder)
        return switches[id(decoder)].changed(output)

    return after_forward


class Switch:
    """One running target."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self._layers = list(decoder.layers_to_capture)
        """As the engine was started."""
        self._text = ""
        self._fault: dict[str, Any] = {}
        self._inputs: dict[int, torch.Tensor] = {}
        """Layer → what it was given without the residual."""
        self._weights: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Rounded weights with what they were."""
        self._rotation: torch.Tensor | None = None
        decoder.register_forward_pre_hook(lambda *_: self.look())
        for number, layer in enumerate(decoder.layers):
            layer.register_forward_pre_hook(self._keeper(number))

    def look(self) -> None:
        """Read the file, and do what it says now."""
        with open(os.environ[FILE], encoding="utf-8") as file:
            text = file.read()
        if text != self._text:
            self._text, self._fault = text, json.loads(text)
            self._decoder.layers_to_capture = list(self._fault.get("layers", self._layers))
            self._restore()
            if "bits" in self._fault:
                self._round(int(self._fault["bits"]))

    def changed(self, output: Any) -> Any:
        """Return the output of a forward with its captured states changed."""
        if not isinstance(output, tuple):
            return output
        hidden, captured = output
        change = self._fault.get("change")
        if change is not None:
            layers = sorted(self._decoder.layers_to_capture)
            captured[:] = [self._change(change, *each) for each in zip(layers, captured, strict=True)]
        order = self._fault.get("slots")
        if order is not None:
            captured[:] = [captured[slot] for slot in order]
        self._inputs.clear()
        return hidden, captured

    def _keeper(self, number: int) -> Callable[..., None]:
        def keep(layer: Any, args: tuple[Any, ...]) -> None:
            if self._fault.get("change") == "un_residualed" and number in self._decoder.layers_to_capture:
                self._inputs[number] = args[1].clone()

        return keep

    def _change(self, change: str, layer: int, states: torch.Tensor) -> torch.Tensor:
        if change == "un_residualed":
            return self._inputs[layer]
        if change == "rotated":
            return (states.float() @ self._orthogonal(states.shape[1])).to(states.dtype)
        norms = {"post_norm": self._decoder.norm, "own_norm": self._decoder.layers[layer].input_layernorm}
        norm = norms[change]
        values = states.float()
        scaled = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
        return (scaled * norm.weight.float()).to(states.dtype)

    def _orthogonal(self, size: int) -> torch.Tensor:
        if self._rotation is None:
            drawn = torch.randn(size, size, generator=torch.Generator().manual_seed(SEED))
            self._rotation = torch.linalg.qr(drawn)[0]
        return self._rotation

    def _round(self, bits: int) -> None:
        for name, weight in self._decoder.layers.named_parameters():
            if weight.dim() == 2 and name.endswith("proj.weight"):
                self._weights.append((weight.data, weight.data.clone()))
                weight.data.copy_(rounded(weight.data, bits))

    def _restore(self) -> None:
        for weight, before in self._weights:
            weight.copy_(before)
        self._weights.clear()


def rounded(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Return a weight as symmetric integers with one scale for each group of inputs would give it."""
    groups = weight.float().view(weight.shape[0], -1, GROUP)
    most = 2 ** (bits - 1) - 1
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12) / most
    return (torch.round(groups / scale).clamp(-most - 1, most) * scale).view_as(weight).to(weight.dtype)
