"""A target in torch, and the residual stream at all its boundaries: what every decoder layer and the final
norm are given, taken by hooks.

Needs torch and transformers (the extra ``states``), which are imported when a target is loaded, not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.errors import DumpError

Floats = NDArray[np.float32]

PATHS = ("model", "language_model.model", "model.language_model", "transformer", "gpt_neox")
"""Where the decoder stands in a causal model."""
LAYERS, NORMS = ("layers", "h"), ("norm", "final_layernorm", "ln_f", "final_layer_norm")
INSTALL = "install it with: pip install 'specscope[states]'"
DTYPES = ("auto", "bfloat16", "float16", "float32")


class Target:
    """A causal model, whole in memory. Code beside its weights is never run: transformers must know it."""

    def __init__(
        self, folder: Path, dtype: str = "auto", device: str = "cpu", threads: int | None = None
    ) -> None:
        """Load it. Raises DumpError when it cannot be loaded, or its layers are not found."""
        self._torch = _imported("torch")
        transformers = _imported("transformers")
        if threads is not None:
            self._torch.set_num_threads(threads)
        kind = dtype if dtype == "auto" else getattr(self._torch, dtype)
        options = {"dtype": kind, "local_files_only": True, "trust_remote_code": False}
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(str(folder), **options)
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise DumpError(f"{folder}: transformers cannot load it as a causal model: {error}") from None
        self.model = model.eval().to(device)
        self._device = device
        self._decoder, self._layers, norm = _parts_of(self.model, folder)
        self.boundaries = len(self._layers) + 1
        self.dtype = str(next(self.model.parameters()).dtype).removeprefix("torch.")
        self.norm_weight: Floats = norm.weight.detach().float().cpu().numpy()
        self.hidden_size = len(self.norm_weight)
        self.model_class = type(self.model).__name__
        self.versions = {"torch": str(self._torch.__version__), "transformers": str(transformers.__version__)}
        self._kept: list[Any] = [None] * self.boundaries
        for boundary, module in enumerate([*self._layers, norm]):
            module.register_forward_pre_hook(self._keep(boundary), with_kwargs=True)

    def _keep(self, boundary: int) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._kept[boundary] = args[0] if args else kwargs["hidden_states"]

        return hook

    def states(self, token_ids: Sequence[int], rows: NDArray[np.int64] | None = None) -> Floats:
        """Return the states of a text at all boundaries, shape (boundaries, rows, H); `rows` None: of all.

        Raises DumpError when a layer was not reached.
        """
        if min(token_ids, default=0) < 0 or max(token_ids, default=0) >= self.vocabulary:
            raise DumpError(
                f"a token id is not among the {self.vocabulary} of the model: another model's dump"
            )
        ids = self._torch.tensor([list(token_ids)], device=self._device)
        self._kept = [None] * self.boundaries
        with self._torch.inference_mode():
            self._decoder(input_ids=ids, use_cache=False)
        missing = [boundary for boundary, each in enumerate(self._kept) if each is None]
        if missing:
            raise DumpError(f"the model did not reach its layers {missing[:5]}; it cannot be replayed here")
        chosen = slice(None) if rows is None else self._torch.as_tensor(rows, device=self._device)
        found = [each[0][chosen].float().cpu().numpy() for each in self._kept]
        self._kept = [None] * self.boundaries
        return np.stack(found)

    @property
    def vocabulary(self) -> int:
        """Token ids it knows."""
        return int(self.model.get_input_embeddings().weight.shape[0])


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DumpError(f"{name} is not there ({error}); {INSTALL}") from None


def _parts_of(model: Any, folder: Path) -> tuple[Any, Any, Any]:
    """Return the decoder, its layers and its final norm. Raises DumpError."""
    for path in PATHS:
        decoder = model
        for name in path.split("."):
            decoder = getattr(decoder, name, None)
        layers = _first(decoder, LAYERS)
        norm = _first(decoder, NORMS)
        if layers is not None and norm is not None and hasattr(norm, "weight"):
            return decoder, layers, norm
    raise DumpError(f"{folder}: {type(model).__name__} keeps its layers in a place that is not known here")


def _first(holder: Any, names: Sequence[str]) -> Any:
    found = [getattr(holder, name) for name in names if getattr(holder, name, None) is not None]
    return found[0] if found else None
