"""Training samples for a replay: a few requests of a dump, each with its first tokens and their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.choosing import choose_files
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.manifests import Manifest
from specscope_collectors.references.places import places_of
from specscope_collectors.references.reading import Dump, Refusals, states_of, told_slots
from specscope_collectors.references.shapes import Told
from specscope_collectors.references.walking import files_of
from specscope_collectors.references.writers import PRE_NORM, Writer

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
LEAST_TOKENS = 8
MOST_STATE_BYTES = 1 << 30
"""Of all samples together, in float32; those of the engine, to compare with, are as many again."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request."""

    name: str
    token_ids: Integers
    states: Floats
    """Shape (places, tokens, H): the slots, then the last state if there is one."""


@dataclass(frozen=True, slots=True)
class Training:
    """Samples of one dump."""

    samples: tuple[Sample, ...]
    hidden_size: int
    slots: int
    has_last: bool
    is_last_pre_norm: bool
    """Whether it is known to be a boundary; a post-norm state is none."""
    boundaries: tuple[int | None, ...]
    """That each slot is said to be; None = nobody says."""
    last_boundary: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which samples."""

    root: Path
    requests: int = 8
    tokens: int = 256
    seed: int = 0
    names: tuple[str, ...] = ()
    """Only these files of the dump; () = all. Those of which rows at all boundaries are known."""
    hidden_size: int | None = None
    boundaries: tuple[int, ...] = ()
    manifest: Manifest | None = None


def read_samples(wanted: Wanted) -> Training:
    """Return samples. Raises DumpError when there are none that are long enough."""
    manifest = wanted.manifest
    size = wanted.hidden_size or (manifest.hidden_size if manifest else None)
    slots = told_slots(
        wanted.boundaries or (manifest.boundaries if manifest else ()), manifest.layer_ids if manifest else ()
    )
    dump = Dump(wanted.root, Told(size, slots))
    names = choose_files(_files(wanted), 64 * 4 * wanted.requests, wanted.seed)
    writer, first, _ = dump.settle(names[: wanted.requests])
    refused = Refusals()
    kept: list[Sample] = []
    for name in names:
        if len(kept) == wanted.requests:
            break
        try:
            found = _sample(dump, name, wanted.tokens)
        except DumpError as error:
            refused.add(name, error)
            continue
        kept += found
        _check_size(kept, wanted)
    if not kept:
        reasons = "; ".join(refused.examples) or f"all have fewer than {LEAST_TOKENS} tokens"
        raise DumpError(f"{wanted.root}: no sample can be replayed: {reasons}")
    return _training(kept, first.last is not None, len(first.slots), writer, wanted)


def _check_size(kept: Sequence[Sample], wanted: Wanted) -> None:
    """Raises DumpError for more states than are held at a time."""
    found = sum(each.states.nbytes for each in kept)
    if found > MOST_STATE_BYTES:
        raise DumpError(
            f"{wanted.root}: the states of the first {len(kept)} samples take over {MOST_STATE_BYTES >> 20} "
            "MiB, and all of them are held while they are compared; replay fewer: less than --requests "
            f"{wanted.requests}, or than --tokens {wanted.tokens}"
        )


def _files(wanted: Wanted) -> list[str]:
    """Return the files to choose from. Raises DumpError when the wanted ones are in another dump."""
    files = files_of(wanted.root)
    kept = [name for name in files if name in set(wanted.names)] if wanted.names else files
    if not kept:
        raise DumpError(
            f"{wanted.root} has none of the {len(wanted.names)} files that --rows was made of (such as "
            f"{wanted.names[0][:100]}): make it of this dump"
        )
    return kept


def _sample(dump: Dump, name: str, tokens: int) -> list[Sample]:
    opened, sample = dump.open(name)
    count = min(len(sample.token_ids), tokens)
    if count < LEAST_TOKENS:
        return []
    rows = np.arange(count)
    states = np.stack([values.copy() for values in states_of(opened, sample, rows)])
    return [Sample(name, sample.token_ids[:count].astype(np.int64), states)]


def _training(kept: Sequence[Sample], has_last: bool, slots: int, writer: Writer, wanted: Wanted) -> Training:
    places = places_of(slots, has_last, writer, wanted.boundaries, wanted.manifest, None)
    is_pre_norm = has_last and writer.last_norm == PRE_NORM
    return Training(
        tuple(kept), kept[0].states.shape[2], slots, has_last, is_pre_norm, places.slots,
        places.last if is_pre_norm else None,
    )  # fmt: skip
