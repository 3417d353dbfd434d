"""Look into one file: every tensor, and for each state its norms token by token and its first values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.final_norm import Floats, judge, squares
from specscope_collectors.references.manifests import manifest_of
from specscope_collectors.references.opening import DumpFile, open_dump
from specscope_collectors.references.reading import ROWS_FOLDER, told_slots
from specscope_collectors.references.row_classes import HEAD_POSITIONS
from specscope_collectors.references.shapes import Sample, State, Told, classify
from specscope_collectors.references.sums import States
from specscope_collectors.references.tensors import floats
from specscope_collectors.references.texts import whole
from specscope_collectors.references.walking import check_exists, listing
from specscope_collectors.references.writers import writer_of

FIRST_VALUES = 5
ROWS_AT_ONCE = 256
MAX_TOKENS = 1_000_000


class TensorSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a file."""

    key: str
    shape: tuple[int, ...]
    dtype: str
    is_contiguous: bool
    storage_bytes: int
    """Size of what it is a view of; several tensors may share it."""


class StateSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One state of every token."""

    place: str
    """``slot 0`` …, or ``last``."""
    key: str
    dtype: str
    norms: list[float | None]
    """‖h‖ of each token, in float32; None = not finite."""
    first_values: list[float | None]
    """Of the first token behind the first positions."""
    first_values_position: int
    position_0: float | None
    median: float | None
    """Behind the first positions, as the next two."""
    least: float | None
    most: float | None
    zero_rows: int
    nonfinite_rows: int


class FileSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    path: str
    container: str
    compression: str
    bytes: int
    tool: str = ""
    tokens: int | None = None
    answer_tokens: int | None = None
    """Tokens with loss_mask = 1; None = there is no mask."""
    token_ids: list[int] = []
    hidden_size: int | None = None
    tensors: list[TensorSeen]
    values: dict[str, str | int | float | bool] = {}
    states: list[StateSeen] = []
    last_norm: str = ""
    last_norm_rule: str = ""
    last_norm_median: float | None = None
    trouble: str = ""
    """Why the tensors are not known to be a sample; empty = they are."""


def inspect(path: Path, hidden_size: int | None = None, norm_weight: Floats | None = None) -> FileSeen:
    """Return what a file holds. Raises DumpError; for a folder or a wrong path it lists what is there.

    A file that opens, and whose tensors are no sample of hidden states, is described all the same.
    """
    check_exists(path)
    if path.is_dir():
        raise DumpError(f"{path} is a folder; it has {listing(path)}; name one file")
    opened = open_dump(path)
    seen: dict[str, Any] = {
        "path": whole(str(path)), "container": opened.container, "compression": opened.compression,
        "bytes": opened.file_bytes, "tensors": list(_tensors(opened)), "values": opened.values,
    }  # fmt: skip
    try:
        sample = classify(opened, _told(path, hidden_size, norm_weight))
    except DumpError as error:
        return FileSeen(**seen, trouble=whole(_reason(error, path)))
    mask = sample.loss_mask
    seen |= {
        "tool": writer_of(opened, sample, bool(ROWS_FOLDER.search(path.absolute().as_posix()))).name,
        "tokens": len(sample.token_ids), "answer_tokens": int(mask.sum()) if mask is not None else None,
        "token_ids": sample.token_ids[:MAX_TOKENS].tolist(), "hidden_size": sample.hidden_size,
        "states": [_state(place, state) for place, state in _places(sample)],
    }  # fmt: skip
    return FileSeen(**seen, **_judged(sample, norm_weight))


def _reason(error: DumpError, path: Path) -> str:
    return str(error).removeprefix(f"{path}: ")


def _told(path: Path, hidden_size: int | None, norm_weight: Floats | None) -> Told:
    manifest = manifest_of(path) or manifest_of(path.parent.parent / "x")
    size = hidden_size or (manifest.hidden_size if manifest else None)
    if size is None and norm_weight is not None:
        size = len(norm_weight)
    return Told(size, told_slots(manifest.boundaries, manifest.layer_ids) if manifest else None)


def _tensors(opened: DumpFile) -> Iterator[TensorSeen]:
    for tensor in opened.tensors:
        yield TensorSeen(
            key=tensor.key, shape=tensor.shape, dtype=tensor.dtype.name, is_contiguous=tensor.is_contiguous,
            storage_bytes=tensor.storage_bytes,
        )  # fmt: skip
    for other in opened.unread:
        yield TensorSeen(
            key=other.key, shape=other.shape, dtype=f"{other.dtype} (not read)", is_contiguous=True,
            storage_bytes=other.storage_bytes,
        )  # fmt: skip


def _places(sample: Sample) -> Iterator[tuple[str, State]]:
    for number, state in enumerate(sample.slots):
        yield f"slot {number}", state
    if sample.last is not None:
        yield "last", sample.last


def _state(place: str, state: State) -> StateSeen:
    ln_norms = _all_ln_norms(state)
    with np.errstate(over="ignore"):
        norms = np.exp(ln_norms.astype(np.float64))
    body = norms[HEAD_POSITIONS:]
    body = body[np.isfinite(body)]
    shown = min(HEAD_POSITIONS, len(norms) - 1)
    values = floats(state.raw[:, :FIRST_VALUES], state.dtype, np.array([shown]))[0]
    return StateSeen(
        place=place, key=state.key, dtype=state.dtype.name, norms=[number_of(norm) for norm in norms],
        first_values=[number_of(value) for value in values], first_values_position=shown,
        position_0=number_of(norms[0]),
        median=number_of(np.median(body)) if len(body) else None,
        least=number_of(body.min()) if len(body) else None, most=number_of(body.max()) if len(body) else None,
        zero_rows=int(np.isneginf(ln_norms).sum()),
        nonfinite_rows=int((~np.isfinite(ln_norms) & ~np.isneginf(ln_norms)).sum()),
    )  # fmt: skip


def _all_ln_norms(state: State) -> Floats:
    rows = np.arange(min(len(state.raw), MAX_TOKENS))
    return np.concatenate(
        [
            States(floats(state.raw, state.dtype, rows[first : first + ROWS_AT_ONCE])).ln_norms
            for first in range(0, len(rows), ROWS_AT_ONCE)
        ]
    )


def _judged(sample: Sample, norm_weight: Floats | None) -> dict[str, Any]:
    if sample.last is None or norm_weight is None:
        return {}
    if len(norm_weight) != sample.hidden_size:
        raise DumpError(
            f"the weight of the final norm has {len(norm_weight)} values for states of {sample.hidden_size}"
        )
    rows = np.arange(min(HEAD_POSITIONS, len(sample.token_ids) - 1), min(len(sample.token_ids), ROWS_AT_ONCE))
    found = judge(squares(floats(sample.last.raw, sample.last.dtype, rows), norm_weight))
    return {"last_norm": found.norm, "last_norm_rule": found.rule, "last_norm_median": found.median}


def number_of(value: np.floating[Any] | float) -> float | None:
    """Return a number with six digits; None for what is not finite."""
    return float(f"{float(value):.6g}") if math.isfinite(float(value)) else None
