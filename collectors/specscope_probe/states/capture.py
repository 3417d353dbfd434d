"""Which layers the running target captures, turned into boundaries.

In SGLang layer i hands out its *input*: the residual stream after i layers, boundary i. A draft's
configuration names layers by their output (id v is boundary v + 1), with exceptions by model; so what the
model really does is read from the model, and what the draft asked for is only reported beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

RULE = "layer i hands out its input, boundary i; slots are in ascending order"
UNKNOWN_RULE = "the model does not say which layers it captures"
CHANGED_RULE = "other layers were captured at the end of these rows than at their beginning"
CALIBRATION_RULE = "inputs of all decoder layers and of the final norm"

PATHS = (("model",), ("language_model", "model"), ("model", "language_model"), ("language_model",), ())
"""Where the decoder's layers are, by kind of model."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What is captured, and where it comes from."""

    layers: tuple[int, ...] | None
    """As read from the model, in its order."""
    boundaries: tuple[int, ...] | None
    """By slot; None: not known, or not as many as there are slots."""
    rule: str
    hidden_size: int
    width: int
    """Of the concatenated state; k times the hidden size."""
    draft_layers: tuple[int, ...] | None = None
    """Ids that the draft's configuration names, in its own meaning."""
    is_calibration: bool = False
    """All boundaries, one after the other, instead of slots."""

    @property
    def slots(self) -> int:
        """Number of states side by side."""
        return self.width // self.hidden_size

    def described(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)


def hidden_size_of(runner: Any) -> int:
    """Return H of the target."""
    size = runner.model_config.hidden_size
    if type(size) is not int or size <= 0:
        raise ValueError(f"the model's hidden size is {size!r}")
    return size


def read_capture(runner: Any, width: int) -> Capture:
    """Return what the target's states of that width are. Raises ValueError when they cannot be k·H wide."""
    hidden_size = hidden_size_of(runner)
    if width <= 0 or width % hidden_size:
        raise ValueError(f"states are {width} wide, which is no multiple of the hidden size {hidden_size}")
    layers = effective_layers(runner.model)
    boundaries = tuple(sorted(set(layers))) if layers is not None else None
    rule = UNKNOWN_RULE if boundaries is None else RULE
    if boundaries is not None and len(boundaries) != width // hidden_size:
        rule = f"{len(boundaries)} layers are to be captured, but states hold {width // hidden_size}"
        boundaries = None
    return Capture(layers, boundaries, rule, hidden_size, width, draft_layers(runner))


def effective_layers(model: Any) -> tuple[int, ...] | None:
    """Return the layers whose input a model captures; None: it does not say."""
    for decoder in _decoders(model):
        flagged = tuple(
            index
            for index, layer in enumerate(_layers(decoder))
            if getattr(layer, "_is_layer_to_capture", False)
        )
        listed = getattr(decoder, "layers_to_capture", None)
        if flagged:
            return flagged
        if isinstance(listed, Sequence) and listed and all(type(layer) is int for layer in listed):
            return tuple(listed)
    return None


def decoder_of(model: Any) -> Any:
    """Return the object that holds decoder layers and the final norm. Raises ValueError when none does."""
    for decoder in _decoders(model):
        if len(_layers(decoder)) and hasattr(decoder, "norm"):
            return decoder
    raise ValueError(f"{type(model).__name__} has no layers with a final norm in a place known here")


def draft_layers(runner: Any) -> tuple[int, ...] | None:
    """Return the layer ids of the draft's configuration, if it names any."""
    for holder in (runner, getattr(runner, "spec_aux_config", None)):  # up to 0.5.15, and after
        with suppress(TypeError, ValueError):
            ids = getattr(holder, "eagle_aux_hidden_state_layer_ids", None)
            if ids is not None:
                return tuple(int(layer) for layer in ids)
    return None


def _decoders(model: Any) -> Iterator[Any]:
    for path in PATHS:
        found = model
        for name in path:
            found = getattr(found, name, None)
        if found is not None:
            yield found


def _layers(decoder: Any) -> Sequence[Any]:
    layers = getattr(decoder, "layers", None)
    return layers if layers is not None and hasattr(layers, "__len__") else ()
