"""What a running engine can be switched to: the plugin of `plugin/`, and what it is told.

The states and the counters are those of the engine's own forwards; the plugin changes which layers it
captures, what it makes of them, or the weights of the target. So one start serves them all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLUGIN = Path(__file__).resolve().parent / "plugin"
FILE = "REAL_MODEL_FAULT"
"""As the plugin calls it, which only the engine's Python can import."""
SITUATIONS: Mapping[str, Mapping[str, object]] = {
    "as_started": {},
    "right": {"layers": [2, 15, 27]},
    "too_deep": {"layers": [3, 16, 28]},
    "too_shallow": {"layers": [1, 14, 26]},
    "embedding": {"layers": [0, 2, 15]},
    "swapped": {"layers": [2, 15, 27], "slots": [2, 1, 0]},
    "un_residualed": {"change": "un_residualed"},
    "rotated": {"change": "rotated"},
    "post_norm": {"change": "post_norm"},
    "own_norm": {"change": "own_norm"},
    "int8": {"bits": 8},
    "int4": {"bits": 4},
}


@dataclass(frozen=True, slots=True)
class Switch:
    """The file that the plugin of one engine reads; it must be there when the engine starts."""

    file: Path

    def to(self, situation: str) -> None:
        """Switch with the next forward. No request may be on its way."""
        new = self.file.with_name(f"{self.file.name}.new")
        new.write_text(json.dumps(SITUATIONS[situation]), encoding="utf-8")
        new.replace(self.file)

    @property
    def variables(self) -> dict[str, str]:
        """Of the engine."""
        return {FILE: str(self.file)}

    @property
    def arguments(self) -> tuple[str, str]:
        """Of the engine."""
        hook = {"name": "faults", "target_modules": ["model"], "hook_factory": "real_model_faults:hook"}
        return "--forward-hooks", json.dumps([hook])
