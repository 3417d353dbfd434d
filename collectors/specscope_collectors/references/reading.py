"""Read the files of one dump as what it is: one hidden size, one number of states, one writer."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.contents import Integers, Memory
from specscope_collectors.references.errors import AmbiguousWidthError, DumpError
from specscope_collectors.references.opening import DumpFile, open_dump
from specscope_collectors.references.shapes import Sample, State, Told, classify
from specscope_collectors.references.sums import Floats, energies_of, ln_norms_of
from specscope_collectors.references.tensors import widened
from specscope_collectors.references.texts import whole
from specscope_collectors.references.walking import path_of
from specscope_collectors.references.writers import NOBODY, Writer, writer_of

EXAMPLES = 5
ROWS_AT_ONCE = 8
"""Of which norms are computed: so few that they stay near the processor."""
ROWS_FOLDER = re.compile(r"(?:^|/)rows_[0-9]+-[0-9]+/")
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """What all files of a dump have in common."""

    hidden_size: int
    slots: int
    has_last: bool

    def words(self) -> str:
        """Say it."""
        last = " and the last state" if self.has_last else ""
        return f"{self.slots} slot{'s' * (self.slots != 1)}{last} of {self.hidden_size}"


def layout_of(sample: Sample) -> Layout:
    """Return the layout of one file."""
    return Layout(sample.hidden_size, len(sample.slots), sample.last is not None)


@dataclass(slots=True)
class Refusals:
    """Files left out."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, name: str, error: DumpError) -> None:
        """Count one; the reasons are told without the numbers that differ from file to file."""
        words = whole(str(error))
        reason = words.partition(": ")[2] or words
        self.counts[_NUMBER.sub("#", reason)[:200] if len(self.counts) < 100 else "other reasons"] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{whole(name[:200])}: {reason[:300]}")


@dataclass(slots=True)
class Dump:
    """The files of a dump."""

    root: Path
    told: Told
    layout: Layout | None = None
    """None until `settle` has looked at some."""

    def open(self, name: str) -> tuple[DumpFile, Sample]:
        """Open one file. Raises DumpError, also for one that is not like the others."""
        opened = open_dump(path_of(self.root, name))
        sample = classify(opened, self.told)
        found = layout_of(sample)
        if self.layout is not None and found != self.layout:
            raise DumpError(
                f"{opened.path}: it has {found.words()}, and most of the dump has "
                f"{self.layout.words()}: one dump is "
                "of one model"
            )
        return opened, sample

    def settle(self, names: list[str]) -> tuple[Writer, Sample, DumpFile]:
        """Decide the layout and the writer by the majority of these files; where the layout is known, by the
        first file that has it.

        Raises DumpError when none can be read, with the reasons; AmbiguousWidthError when it must be told.
        """
        known, layouts = self.layout, Counter[Layout]()
        kept: dict[Layout, tuple[Writer, Sample, DumpFile]] = {}
        refused, ambiguous = Refusals(), None
        for name in names:
            try:
                opened, sample = self.open(name)
            except AmbiguousWidthError as error:
                ambiguous = ambiguous or error
                continue
            except DumpError as error:
                refused.add(name, error)
                continue
            layouts[layout_of(sample)] += 1
            if layout_of(sample) not in kept:
                writer = writer_of(opened, sample, bool(ROWS_FOLDER.search(name)))
                kept[layout_of(sample)] = (writer, sample, opened)
            if known is not None:
                break
        if not layouts:
            if ambiguous is not None:
                raise ambiguous
            reasons = "; ".join(refused.examples)
            raise DumpError(f"{self.root}: none of the {len(names)} files looked at can be read: {reasons}")
        self.layout = layouts.most_common(1)[0][0]
        return kept[self.layout]


def told_slots(boundaries: tuple[int, ...], layer_ids: tuple[int, ...]) -> int | None:
    """Return how many slots there are by what is named; None = nothing is. Layer ids name the last, too."""
    if layer_ids and not boundaries:
        return len(layer_ids) - 1 or None
    return len(boundaries) or None


def places_of_states(sample: Sample) -> list[State]:
    """Return the slots, and then the last state if there is one."""
    return [*sample.slots, *([sample.last] if sample.last is not None else [])]


def states_of(
    opened: DumpFile, sample: Sample, rows: Integers, into: Floats | None = None,
    memory: Memory | None = None, *, is_asked_for: bool = False,
) -> Iterator[Floats]:  # fmt: skip
    """Return the states of these rows, slot by slot and then the last state, each (rows, H) in float32.

    All of them are read here, and widened one by one. ``into``: memory for one of them, which the next one
    then overwrites; ``memory``: for what is read. ``is_asked_for``: the system was told already that these
    rows will be read. Raises DumpError, whose text begins with the path.
    """
    places = places_of_states(sample)
    read = _rows_of(opened, places, rows, memory, is_asked_for)
    return (widened(raw, state.dtype, into) for state, raw in zip(places, read, strict=True))


def ln_norms_of_rows(
    opened: DumpFile, sample: Sample, rows: Integers, memory: Memory | None = None,
    *, is_asked_for: bool = False,
) -> list[Floats]:  # fmt: skip
    """Return ln‖h‖ of these rows, slot by slot and then of the last state, in little memory.

    A few rows at a time are read, widened and squared near the processor, while the system reads the next.
    Raises DumpError, whose text begins with the path.
    """
    places, memory = places_of_states(sample), memory or Memory()
    energies = [np.zeros(len(rows), np.float32) for _ in places]
    scratch = np.zeros((ROWS_AT_ONCE, sample.hidden_size), np.float32)
    blocks = _blocks_of(opened, places, rows, memory, is_asked_for)
    with np.errstate(over="ignore", invalid="ignore"), told_of(opened):
        for number, block in enumerate(blocks):
            for energy, state, raw in zip(energies, places, block, strict=True):
                values, first = widened(raw, state.dtype, scratch), number * ROWS_AT_ONCE
                energies_of(values, energy[first : first + len(values)])
    return [ln_norms_of(energy) for energy in energies]


def _blocks_of(
    opened: DumpFile, places: list[State], rows: Integers, memory: Memory, is_asked_for: bool
) -> Iterator[list[NDArray[Any]]]:
    views = [state.raw for state in places]
    if opened.content is not None:
        return opened.content.read_some(views, rows, memory, ROWS_AT_ONCE, is_asked_for=is_asked_for)
    parts = (rows[first : first + ROWS_AT_ONCE] for first in range(0, len(rows), ROWS_AT_ONCE))
    return ([raw[part] for raw in views] for part in parts)


@contextmanager
def told_of(opened: DumpFile) -> Iterator[None]:
    """Begin the text of a DumpError with the path."""
    try:
        yield
    except DumpError as error:
        raise DumpError(f"{opened.path}: {error}") from None


def _rows_of(
    opened: DumpFile, places: list[State], rows: Integers, memory: Memory | None, is_asked_for: bool
) -> list[NDArray[Any]]:
    views = [state.raw for state in places]
    if opened.content is None:
        return [raw[rows] for raw in views]
    with told_of(opened):
        return opened.content.read(views, rows, memory or Memory(), is_asked_for=is_asked_for)


def fingerprint_of(opened: DumpFile, sample: Sample) -> str:
    """Return a hash of one file: its size and its token ids."""
    digest = hashlib.sha256(str(opened.file_bytes).encode())
    digest.update(sample.token_ids.astype("<i8").tobytes())
    return digest.hexdigest()


def is_known(writer: Writer) -> bool:
    """Say whether the writer was recognised."""
    return writer is not NOBODY
