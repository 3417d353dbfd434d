"""The state of a build that was stopped: one file beside the result, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.reading import Layout, Refusals
from specscope_collectors.references.showing import Shown
from specscope_collectors.references.sums import SlotSums, Table

SAVE_SECONDS = 10.0


@dataclass(slots=True)
class SavedSums:
    """Arrays of a `SlotSums`."""

    channels: NDArray[Any]
    tokens: NDArray[Any]
    token_rows: NDArray[Any]


@dataclass(slots=True)
class Looked:
    """What a look at the first requests told: it is not taken again."""

    layout: Layout
    limits: list[float | None]
    """Of sinks, by place; ∞ = nothing is one, None = not known."""
    token_ids: tuple[int, ...]
    shown: Shown


@dataclass(slots=True)
class Saved:
    """How far a build has come."""

    looked: Looked
    done: int
    tokens: int
    has_mask: bool
    digests: list[str]
    refused: Refusals
    table: Table
    sums: Sequence[SlotSums | SavedSums]


class Checkpoint:
    """One file; ``path`` None = nothing is kept. ``key`` says what build it is of."""

    def __init__(self, path: Path | None, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._key = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        self._clock = clock
        self._saved_at = clock()

    def load(self) -> Saved | None:
        """Return the state of the same build; None when there is none, or it cannot be read."""
        if self._path is None or not self._path.is_file():
            return None
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as found:
                head = json.loads(found["head"].tobytes())
                if head["key"] != self._key:
                    return None
                looked = _looked(head["looked"])
                table = Table({name: [found[f"table_{name}"]] for name in head["columns"]}, head["rows"])
                sums = [
                    SavedSums(*(found[f"{name}_{place}"] for name in ("channels", "tokens", "token_rows")))
                    for place in range(head["places"])
                ]
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            return None
        refused = Refusals(Counter(head["refused"]), head["examples"])
        return Saved(
            looked, head["done"], head["tokens"], head["has_mask"], head["digests"], refused, table, sums
        )

    def save_sometimes(self, state: Callable[[], Saved]) -> None:
        """Save when the last time is long ago."""
        if self._path is not None and self._clock() - self._saved_at >= SAVE_SECONDS:
            self.save(state())

    def save(self, state: Saved) -> None:
        """Replace the file. Raises OSError."""
        if self._path is None:
            return
        head = {
            "key": self._key, "looked": _told(state.looked),
            "columns": list(state.table.columns), "rows": state.table.rows,
            "places": len(state.sums), "done": state.done, "tokens": state.tokens, "has_mask": state.has_mask,
            "digests": state.digests, "refused": dict(state.refused.counts),
            "examples": state.refused.examples,
        }  # fmt: skip
        arrays: dict[str, Any] = {"head": np.frombuffer(json.dumps(head).encode(), np.uint8)}
        arrays |= {f"table_{name}": state.table.column(name) for name in state.table.columns}
        for place, sums in enumerate(state.sums):
            arrays |= {
                f"{name}_{place}": getattr(sums, name) for name in ("channels", "tokens", "token_rows")
            }
        hidden = self._hidden(self._path)
        try:
            with hidden.open("wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(self._path)
        finally:
            with suppress(OSError):
                hidden.unlink()
        self._saved_at = self._clock()

    def remove(self) -> None:
        """Remove the file, and what a kill left of the next one: the build is done."""
        for path in (self._path, self._hidden(self._path)) if self._path is not None else ():
            with suppress(OSError):
                path.unlink()

    @staticmethod
    def _hidden(path: Path) -> Path:
        """Return where it is written: what a kill left of one is overwritten by the next."""
        return path.with_name(f".{path.name}.new")


def _told(looked: Looked) -> dict[str, Any]:
    layout = looked.layout
    return {
        "layout": [layout.hidden_size, layout.slots, layout.has_last],
        "limits": ["none" if limit is None else str(limit) for limit in looked.limits],
        "token_ids": list(looked.token_ids), "shown": looked.shown.saved(),
    }  # fmt: skip


def _looked(found: dict[str, Any]) -> Looked:
    limits = [None if limit == "none" else float(limit) for limit in found["limits"]]
    if any(limit is not None and math.isnan(limit) for limit in limits):
        raise ValueError("a limit of sinks is not a number")
    return Looked(Layout(*found["layout"]), limits, tuple(found["token_ids"]), Shown.of(found["shown"]))
