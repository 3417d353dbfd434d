"""Sorts a block of lines: what says nothing, what is read one by one, and lines of known shapes.

What a line is depends on its shape alone, and a log has few shapes: one look-up a line. All numbers of known
shapes are then taken out together. Needs numpy, which the server has; `reading` goes without where it is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from specscope_collectors.logs.stamps import Clockface
from specscope_collectors.logs.wrappers import PARTIALS
from specscope_collectors.sources.sglang_log.columns import Columns, Integers, Table, columns_of
from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.runs import Mixture, Run
from specscope_collectors.sources.sglang_log.scan import lines_of_interest
from specscope_collectors.sources.sglang_log.shapes import SAME_DIGITS, Form, learn

MAX_SHAPES, MAX_SHAPE_BYTES = 10_000, 1_024
MAX_LEARNT = 500
"""In one block; learning takes longer than reading a line."""
_NOISE, _SINGLY, _FIRST = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CutBlock:
    """A block cut into lines."""

    data: bytes
    starts: Integers
    ends: Integers
    kinds: Integers
    has_partials: bool
    """Some of its lines are parts of lines, and must be joined first."""


@dataclass(slots=True)
class Sorter:
    """Knows the shapes of a log."""

    clock: Clockface
    kinds: dict[bytes, int] = field(default_factory=dict)
    """Shape → what its lines are: noise, to be read one by one, or the number of a learnt shape."""
    partials: set[bytes] = field(default_factory=set)
    """Shapes of parts of lines."""
    tables: dict[Form, Table] = field(default_factory=dict)
    learnt: list[tuple[Table, int]] = field(default_factory=list)

    def cut(self, data: bytes) -> CutBlock:
        """Cut a block into lines and tell their kinds."""
        if len(self.kinds) + len(self.partials) > MAX_SHAPES:
            self._forget()
        shapes = data.translate(SAME_DIGITS).split(b"\n")
        kinds = list(map(self.kinds.get, shapes))
        has_partials = bool(self.partials) and not self.partials.isdisjoint(shapes)
        ends = np.append(np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")), len(data))
        starts = np.append(0, ends[:-1] + 1)
        if None in kinds:
            has_partials |= self._learn(data, shapes, kinds, starts)
        return CutBlock(data, starts, ends, np.array(kinds, dtype=np.int64), has_partials)

    def _forget(self) -> None:
        """Forget noise, which may be of ever new shapes; forget all if status lines are."""
        self.partials.clear()
        self.kinds = {shape: kind for shape, kind in self.kinds.items() if kind >= _FIRST}
        if len(self.kinds) > MAX_SHAPES // 2:
            self.kinds.clear()
            self.tables.clear()
            self.learnt.clear()

    def _learn(self, data: bytes, shapes: list[bytes], kinds: list[int | None], starts: Integers) -> bool:
        """Fill in the kinds that are not known; return whether there are `PARTIALS` in them.

        Neither these nor needles have digits, so they are looked for in the shapes.
        """
        unknown = [at for at, kind in enumerate(kinds) if kind is None]
        text = b"\n".join([shapes[at] for at in unknown])
        offsets = np.cumsum([0, *(len(shapes[at]) + 1 for at in unknown)])
        places = np.searchsorted(offsets, [start for start, _ in lines_of_interest(text)], side="right") - 1
        matters = {unknown[place] for place in places.tolist()}
        most = len(self.learnt) + MAX_LEARNT
        for at in unknown:
            shape = shapes[at]
            kind = _SINGLY if at in matters and len(self.learnt) >= most else self.kinds.get(shape)
            if kind is None:
                start = int(starts[at])
                kind = self._kind(data[start : start + len(shape)]) if at in matters else _NOISE
                if len(shape) <= MAX_SHAPE_BYTES:
                    self.kinds[shape] = kind
            kinds[at] = kind
        if not any(mark in text for mark in PARTIALS):
            return False
        short = (shapes[at] for at in unknown if len(shapes[at]) <= MAX_SHAPE_BYTES)
        self.partials.update(shape for shape in short if any(mark in shape for mark in PARTIALS))
        return True

    def _kind(self, line: bytes) -> int:
        shape = learn(line)
        if shape is None:
            return _SINGLY
        table = self.tables.setdefault(shape.form, Table(shape.form))
        self.learnt.append((table, table.add(shape)))
        return _FIRST + len(self.learnt) - 1

    def sort(self, block: CutBlock, *, may_be_cut: bool) -> Mixture:
        """Sort the lines; ``may_be_cut``: the last may have no end."""
        kinds, data = block.kinds, np.frombuffer(block.data, dtype=np.uint8)
        if may_be_cut and kinds[-1] > _SINGLY:
            kinds[-1] = _SINGLY
        singly = [np.flatnonzero(kinds == _SINGLY)]
        ranks: dict[Rank, int] = {}
        parts = []
        for table, lines, rows in self._by_form(kinds):
            numbers = table.numbers(data, block.starts[lines], rows)
            columns = columns_of(table.form, numbers, lines, self.clock, ranks)
            if not columns.is_sure.all():
                singly.append(lines[~columns.is_sure])
                columns = columns.rows(columns.is_sure)
            parts.append(columns)
        return Mixture(block.starts, block.ends, np.sort(np.concatenate(singly)), _run(parts, tuple(ranks)))

    def _by_form(self, of_line: Integers) -> Iterator[tuple[Table, Integers, Integers]]:
        """Yield (table, lines, row of the table for each line) of each form in the block."""
        lines = np.flatnonzero(of_line >= _FIRST)
        if not len(lines):
            return
        distinct, places = np.unique(of_line[lines], return_inverse=True)
        found = [self.learnt[kind - _FIRST] for kind in distinct.tolist()]
        rows = np.array([row for _, row in found], dtype=np.int64)[places]
        tables = {id(table): table for table, _ in found}
        forms = np.array([id(table) for table, _ in found], dtype=np.int64)[places]
        for key, table in tables.items():
            is_it = forms == key
            yield table, lines[is_it], rows[is_it]


def _run(parts: list[Columns], ranks: tuple[Rank, ...]) -> Run:
    """Return all lines in their order."""
    empty = np.empty(0, dtype=np.int64)
    lines, times_ms, of_rank = (
        np.concatenate([empty, *(getattr(part, name) for part in parts)])
        for name in ("lines", "times_ms", "of_rank")
    )
    order = np.argsort(lines, kind="stable")
    return Run(lines[order], times_ms[order], of_rank[order], ranks, tuple(parts))
