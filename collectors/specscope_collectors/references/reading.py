"""Read the files of one dump as what it is: one hidden size, one number of states, one writer."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.errors import AmbiguousWidthError, DumpError
from specscope_collectors.references.opening import DumpFile, open_dump
from specscope_collectors.references.shapes import Sample, State, Told, classify
from specscope_collectors.references.sums import Floats
from specscope_collectors.references.tensors import floats
from specscope_collectors.references.texts import whole
from specscope_collectors.references.walking import path_of
from specscope_collectors.references.writers import NOBODY, Writer, writer_of

EXAMPLES = 5
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
    opened: DumpFile, sample: Sample, rows: NDArray[np.int64], into: Floats | None = None,
    *, is_asked_for: bool = False,
) -> Iterator[Floats]:  # fmt: skip
    """Yield the states of these rows, slot by slot and then the last state, each (rows, H) in float32.

    ``into``: memory for one of them, which the next one then overwrites. ``is_asked_for``: the system
    was told already that these rows will be read.
    """
    places = places_of_states(sample)
    for state in places if not is_asked_for else ():
        opened.prefetch(state.raw, rows)
    for state in places:
        yield floats(state.raw, state.dtype, rows, into)


def fingerprint_of(opened: DumpFile, sample: Sample) -> str:
    """Return a hash of one file: its size and its token ids."""
    digest = hashlib.sha256(str(opened.file_bytes).encode())
    digest.update(sample.token_ids.astype("<i8").tobytes())
    return digest.hexdigest()


def is_known(writer: Writer) -> bool:
    """Say whether the writer was recognised."""
    return writer is not NOBODY
