"""Sorts a block of lines: what says nothing, what is read one by one, and lines of known shapes.

What a line is depends on its shape alone, and a log has few shapes: one look-up a line. All numbers of known
shapes are then taken out together. Needs numpy, which the server has; `reading` goes without where it is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from specscope_collectors.sources.sglang_log.columns import Columns, Integers, Table, columns_of
from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.runs import Mixture, Run
from specscope_collectors.sources.sglang_log.scan import lines_of_interest
from specscope_collectors.sources.sglang_log.shapes import SAME_DIGITS, Form, learn
from specscope_collectors.sources.sglang_log.stamps import Clockface

MAX_SHAPES, MAX_SHAPE_BYTES = 20_000, 1_024
_NOISE, _SINGLY, _FIRST = 0, 1, 2


@dataclass(slots=True)
class Sorter:
    """Knows the shapes of a log."""

    clock: Clockface
    kinds: dict[bytes, int] = field(default_factory=dict)
    """Shape → what its lines are: noise, to be read one by one, or the number of a learnt shape."""
    tables: dict[Form, Table] = field(default_factory=dict)
    learnt: list[tuple[Table, int]] = field(default_factory=list)

    def sort(self, data: bytes, *, may_be_cut: bool) -> Mixture:
        """Sort the lines of a block; ``may_be_cut``: its last line may have no end."""
        shapes = data.translate(SAME_DIGITS).split(b"\n")
        ends = np.append(np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")), len(data))
        starts = np.append(0, ends[:-1] + 1)
        if len(self.kinds) > MAX_SHAPES:
            self._forget()
        kinds = list(map(self.kinds.get, shapes))
        if None in kinds:
            self._learn(data, shapes, kinds, starts)
        of_line = np.array(kinds, dtype=np.int64)
        if may_be_cut and of_line[-1] > _SINGLY:
            of_line[-1] = _SINGLY
        return self._mixture(data, starts, ends, of_line)

    def _forget(self) -> None:
        self.kinds.clear()
        self.tables.clear()
        self.learnt.clear()

    def _learn(self, data: bytes, shapes: list[bytes], kinds: list[int | None], starts: Integers) -> None:
        """Fill in the kinds that are not known; needles have no digits, so shapes are searched for them."""
        unknown = [at for at, kind in enumerate(kinds) if kind is None]
        text = b"\n".join([shapes[at] for at in unknown])
        offsets = np.cumsum([0, *(len(shapes[at]) + 1 for at in unknown)])
        places = np.searchsorted(offsets, [start for start, _ in lines_of_interest(text)], side="right") - 1
        matters = {unknown[place] for place in places.tolist()}
        for at in unknown:
            shape = shapes[at]
            kind = self.kinds.get(shape)
            if kind is None:
                start = int(starts[at])
                kind = self._kind(data[start : start + len(shape)]) if at in matters else _NOISE
                if len(shape) <= MAX_SHAPE_BYTES:
                    self.kinds[shape] = kind
            kinds[at] = kind

    def _kind(self, line: bytes) -> int:
        shape = learn(line)
        if shape is None:
            return _SINGLY
        table = self.tables.setdefault(shape.form, Table(shape.form))
        self.learnt.append((table, table.add(shape)))
        return _FIRST + len(self.learnt) - 1

    def _mixture(self, data: bytes, starts: Integers, ends: Integers, of_line: Integers) -> Mixture:
        singly = [np.flatnonzero(of_line == _SINGLY)]
        ranks: dict[Rank, int] = {}
        parts = []
        for table, lines, rows in self._by_form(of_line):
            numbers = table.numbers(np.frombuffer(data, dtype=np.uint8), starts[lines], rows)
            columns = columns_of(table.form, numbers, lines, self.clock, ranks)
            if not columns.is_sure.all():
                singly.append(lines[~columns.is_sure])
                columns = columns.rows(columns.is_sure)
            parts.append(columns)
        return Mixture(starts, ends, np.sort(np.concatenate(singly)), _run(parts, tuple(ranks)))

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
