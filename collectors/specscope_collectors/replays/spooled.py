"""States of a replay as the probe leaves them: files of whole rows in the spool of the engine's host."""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from specscope_collectors.references.dtypes import BFLOAT16, as_float32
from specscope_collectors.references.training_rows import NPZ_ERRORS
from specscope_collectors.references.walking import check_regular
from specscope_collectors.replays.engine import MARK, Engine
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.pairing import Served
from specscope_collectors.replays.samples import Training

PATTERN = re.compile(r"specscope-replay-([0-9a-f]{8,32})-([0-9]{5})-([0-9]{7})\.npz")
MAX_FILE_BYTES = 1 << 30
WAIT_SECONDS, POLL_SECONDS = 20.0, 0.2
NUDGE_AFTER = 5
"""Looks without a file after which a request of one token lets the engine go on."""
OFF = (
    "the probe left no rows: start the engine with the probe, SPECSCOPE_PROBE_REPLAY=1 and SPECSCOPE_SPOOL, "
    "and give that folder as --spool; the target must hand out states (a draft of EAGLE-3's kind)"
)


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe says beside rows."""

    format: int
    dtype: str
    engine_version: str = ""
    capture: dict[str, Any] = {}


@dataclass(slots=True)
class Gathered:
    """States of the samples, and where the engine says that they are from."""

    served: dict[int, Served] = field(default_factory=dict)
    boundaries: tuple[int, ...] | None = None
    """Of each slot, as the probe read them from the running model."""
    missing: str = ""
    way: str = "probe"


def through_probe(
    engine: Engine, training: Training, run: str, spool: Path, wait: Callable[[float], None] = time.sleep
) -> Gathered:
    """Send samples, one after the other, and gather what the probe left. Raises ReplayError.

    The folder need not be there yet: the probe makes it with its first file.
    """
    gathered = Gathered()
    try:
        for index, sample in enumerate(training.samples):
            engine.prefill(sample.token_ids.tolist(), f"{MARK}-{run}-{index}")
            _gather(engine, gathered, index, len(sample.token_ids), run, spool, wait)
            if not gathered.served:
                break  # nothing of the first one: nothing of the others
    finally:
        for path in spool.glob(f"{MARK}-{run}-*.npz"):  # what came too late
            with suppress(OSError):
                path.unlink()
    if not gathered.served:
        gathered.missing = OFF
    return gathered


def _gather(
    engine: Engine, gathered: Gathered, index: int, tokens: int, run: str, spool: Path,
    wait: Callable[[float], None],
) -> None:  # fmt: skip
    """Wait for the files of one sample: its last row says that there will be no more."""
    parts: dict[int, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for look in range(int(WAIT_SECONDS / POLL_SECONDS)):
        for start, path in _files(spool, run, index).items():
            if start not in parts:
                parts[start] = _read(path, gathered)
            with suppress(OSError):
                path.unlink()
        if any(start + len(states) >= tokens for start, states in parts.items()):
            break
        if look % NUDGE_AFTER == NUDGE_AFTER - 1:
            engine.prefill([0], f"{MARK}-nudge-{run}-{index}-{look}")
        wait(POLL_SECONDS)
    if parts:
        starts = sorted(parts)
        positions = np.concatenate([np.arange(start, start + len(parts[start])) for start in starts])
        gathered.served[index] = Served(positions, np.concatenate([parts[start] for start in starts]))


def _files(spool: Path, run: str, index: int) -> Mapping[int, Path]:
    """Return the files of a sample by their first position."""
    found = {}
    for path in spool.glob(f"{MARK}-{run}-{index:05d}-*.npz"):
        match = PATTERN.fullmatch(path.name)
        if match is not None:
            found[int(match[3])] = path
    return found


def _read(path: Path, gathered: Gathered) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return rows, float32. Raises ReplayError for what the probe does not write."""
    try:
        check_regular(path)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"it has over {MAX_FILE_BYTES} bytes")
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_FILE_BYTES:
                raise ValueError(f"it unpacks to over {MAX_FILE_BYTES} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            described = msgspec.json.decode(arrays["described"].tobytes(), type=Described)
            states = arrays["states"]
        if described.format != 1 or states.ndim != 2:
            raise ValueError(f"it has format {described.format} and shape {states.shape}")
        _note_capture(described, gathered)
        return as_float32(states, BFLOAT16) if described.dtype == "bfloat16" else states.astype(np.float32)
    except (*NPZ_ERRORS, OSError, msgspec.MsgspecError) as error:
        reason = str(error) or type(error).__name__
        raise ReplayError(f"{path} is not as the probe writes it: {reason[:200]}") from None


def _note_capture(described: Described, gathered: Gathered) -> None:
    found = described.capture.get("boundaries")
    if isinstance(found, list) and all(type(each) is int for each in found):
        gathered.boundaries = tuple(found)
