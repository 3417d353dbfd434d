"""Build the reference of a dump: look at a few requests, then read rows of many, and say what they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from specscope_collectors.references.ahead import Ahead
from specscope_collectors.references.checkpointing import Checkpoint, Looked, Saved
from specscope_collectors.references.choosing import ROWS_OF_A_REQUEST, choose_files
from specscope_collectors.references.contents import Memory
from specscope_collectors.references.document import Reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.final_norm import Floats, squares
from specscope_collectors.references.manifests import Manifest
from specscope_collectors.references.opening import DumpFile
from specscope_collectors.references.projection import SKETCH, projection_of
from specscope_collectors.references.reading import (
    Dump,
    Refusals,
    fingerprint_of,
    ln_norms_of_rows,
    states_of,
    told_slots,
)
from specscope_collectors.references.row_classes import HEAD_POSITIONS, sink_limit
from specscope_collectors.references.shapes import Sample, Told
from specscope_collectors.references.showing import Shown
from specscope_collectors.references.sums import COMPARED_ROWS, Rows, SlotSums, States, Table
from specscope_collectors.references.telling import Read, tell
from specscope_collectors.references.walking import files_of, path_of

DEFAULT_BUDGET_ROWS, MAX_BUDGET_ROWS = 65_536, 1_000_000
DEFAULT_SEED = 20_260_401
PILOTS = 64
"""Requests that are looked at first: for the layout, the limits of sinks, and the commonest token ids."""
COMMON_IDS, MAX_TOKEN_IDS = 64, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user wants."""

    root: Path
    name: str
    made_ms: int
    budget_rows: int = DEFAULT_BUDGET_ROWS
    seed: int = DEFAULT_SEED
    hidden_size: int | None = None
    boundaries: tuple[int, ...] = ()
    manifest: Manifest | None = None
    draft: Manifest | None = None
    norm_weight: Floats | None = None
    token_ids: tuple[int, ...] = ()
    checkpoint: Path | None = None


def dump_of(order: Order) -> Dump:
    """Return the dump with what is known of it before a file is opened."""
    manifest = order.manifest
    size = order.hidden_size or (manifest.hidden_size if manifest else None)
    if size is None and order.norm_weight is not None:
        size = len(order.norm_weight)
    boundaries = order.boundaries or (manifest.boundaries if manifest else ())
    slots = told_slots(boundaries, manifest.layer_ids if manifest else ())
    return Dump(order.root, Told(size, slots))


def one_thread() -> AbstractContextManager[object]:
    """Keep numpy's matrix products on one thread: they are so small that more of them only wait."""
    limited: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limited


Tell = Callable[[int, int], None]
"""Is told how many of how many requests are done."""


class Building:
    """One build; `run` may be stopped at any request, and another build of the same order goes on."""

    def __init__(self, order: Order) -> None:
        """Look at the dump. Raises DumpError, AmbiguousWidthError."""
        self.order = order
        self._dump = dump_of(order)
        self._files = files_of(order.root)
        self._chosen = choose_files(self._files, order.budget_rows, order.seed)
        self._checkpoint = Checkpoint(order.checkpoint, self._key())
        saved = self._checkpoint.load()
        self._dump.layout = saved.looked.layout if saved is not None else None
        self._writer, self._first, self._opened = self._dump.settle(self._chosen[:PILOTS])
        width = self._first.hidden_size
        if order.norm_weight is not None and len(order.norm_weight) != width:
            raise DumpError(
                f"the weight of the final norm has {len(order.norm_weight)} values for states of {width}"
            )
        self._sketching = projection_of(width, SKETCH)
        self._memory = Memory()
        self._scratch = np.zeros((2, ROWS_OF_A_REQUEST, width), np.float32)
        self._places = len(self._first.slots) + (self._first.last is not None)
        with one_thread():
            self._looked = saved.looked if saved is not None else self._look()
        self.limits, self.token_ids = self._looked.limits, self._looked.token_ids
        ids = np.array(self.token_ids, np.int64)
        self._sums = [SlotSums(width, ids, math.inf if limit is None else limit) for limit in self.limits]
        self._table, self._refused, self._done = Table(), Refusals(), 0
        self._has_mask, self._tokens, self._digests = False, 0, [""] * len(self._chosen)
        self._ahead = Ahead(self._dump, self._chosen, order.seed)
        if saved is not None:
            self._take_up(saved)

    @property
    def requests(self) -> int:
        """How many are to be read."""
        return len(self._chosen)

    def run(self, tell_progress: Tell = lambda done, total: None) -> Reference:
        """Read what is still to be read. Raises DumpError when nothing could be read.

        The checkpoint stays until `forget`: what is returned here is not stored yet.
        """
        try:
            with one_thread():
                while self._done < len(self._chosen):
                    tell_progress(self._done, len(self._chosen))
                    self._read(self._done)
                    self._done += 1
                    self._checkpoint.save_sometimes(self._saved)
        except KeyboardInterrupt:
            self._checkpoint.save(self._saved())
            raise
        tell_progress(self._done, len(self._chosen))
        with one_thread():
            return self._told()

    def forget(self) -> None:
        """Remove the checkpoint: the reference is stored."""
        self._checkpoint.remove()

    def _look(self) -> Looked:
        """Return the limits of sinks by slot, the token ids to keep directions of, and rows to be shown."""
        shown = Shown()
        norms: list[list[Floats]] = [[] for _ in range(self._places)]
        counts: Counter[int] = Counter()
        ahead = Ahead(self._dump, self._chosen[:PILOTS], self.order.seed)
        for number in range(min(PILOTS, len(self._chosen))):
            try:
                opened, sample, rows = ahead.open(number)
                rows = rows[rows >= HEAD_POSITIONS]
                found = ln_norms_of_rows(opened, sample, rows, self._memory, is_asked_for=True)
                states = self._states(opened, sample, rows) if shown.begin() else ()
            except DumpError:
                continue
            for place, ln_norms in enumerate(found):
                norms[place].append(ln_norms)
            for place, values in enumerate(states):
                values[~np.isfinite(found[place])] = 0
                shown.add(place, rows, sample.token_ids[rows], values, found[place])
            body = sample.token_ids if sample.loss_mask is None else sample.token_ids[sample.loss_mask]
            counts.update(body.tolist())
        common = sorted(counts, key=lambda token: (-counts[token], token))[:COMMON_IDS]
        ids = self.order.token_ids or tuple(token for token in common if 0 <= token < 2**31)
        assert self._dump.layout is not None
        limits = [sink_limit(np.concatenate(each)) for each in norms]
        return Looked(self._dump.layout, limits, tuple(sorted(set(ids))), shown)

    def _states(self, opened: DumpFile, sample: Sample, rows: NDArray[np.int64]) -> Iterator[Floats]:
        return states_of(opened, sample, rows, self._scratch[0], self._memory, is_asked_for=True)

    def _read(self, number: int) -> None:
        try:
            opened, sample, chosen = self._ahead.open(number)
            read = self._states(opened, sample, chosen)
        except DumpError as error:
            self._refused.add(self._chosen[number], error)
            return
        mask = sample.loss_mask
        rows = Rows(
            number, chosen, sample.token_ids[chosen],
            mask[chosen] if mask is not None else np.zeros(len(chosen), np.bool_),
        )  # fmt: skip
        self._has_mask |= mask is not None
        self._tokens += len(sample.token_ids)
        self._digests[number] = fingerprint_of(opened, sample)
        columns: dict[str, NDArray[Any]] = {
            "request": np.full(len(chosen), number, np.int32), "position": chosen, "id": rows.ids,
            "is_answer": rows.is_answer,
        }  # fmt: skip
        is_compared = self._table.rows < COMPARED_ROWS
        for place, values in enumerate(read):
            states = States(values, self._scratch[1])
            self._sums[place].add(rows, states)
            columns[f"ln_norm_{place}"] = states.ln_norms
            if is_compared:
                columns[f"sketch_{place}"] = states.projected(self._sketching)
            if place == len(sample.slots) and self.order.norm_weight is not None:
                columns["square"] = squares(states.values, self.order.norm_weight)
        self._table.add(len(chosen), **columns)

    def _key(self) -> str:
        order = self.order
        weight = order.norm_weight.tobytes().hex()[:200] if order.norm_weight is not None else ""
        parts = (order.budget_rows, order.seed, self._dump.told, order.token_ids, weight)
        files = (f"{name} {_stamp(path_of(order.root, name))}" for name in self._chosen)
        return f"{parts}\n" + "\n".join(files)

    def _saved(self) -> Saved:
        return Saved(
            self._looked, self._done, self._tokens, self._has_mask, self._digests, self._refused, self._table,
            self._sums,
        )  # fmt: skip

    def _take_up(self, saved: Saved) -> None:
        self._done, self._tokens, self._has_mask = saved.done, saved.tokens, saved.has_mask
        self._digests, self._refused, self._table = saved.digests, saved.refused, saved.table
        for mine, theirs in zip(self._sums, saved.sums, strict=True):
            mine.channels, mine.tokens, mine.token_rows = theirs.channels, theirs.tokens, theirs.token_rows

    def _told(self) -> Reference:
        if not self._table.rows:
            raise DumpError(f"{self.order.root}: no row could be read: {'; '.join(self._refused.examples)}")
        return tell(
            self.order, self._dump, Read(
                files=self._files, chosen=self._chosen, writer=self._writer, sample=self._first,
                opened=self._opened, limits=self.limits, token_ids=self.token_ids,
                table=self._table, sums=self._sums,
                refused=self._refused, tokens=self._tokens, has_mask=self._has_mask, digests=self._digests,
                shown=self._looked.shown,
            ),
        )  # fmt: skip


def _stamp(path: Path) -> str:
    """Return what changes when a file does."""
    try:
        found = path.stat()
    except OSError:
        return "gone"
    return f"{found.st_size} {found.st_mtime_ns}"
