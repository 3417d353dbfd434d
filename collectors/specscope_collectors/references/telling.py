"""What was read, as the document of a reference."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specscope_collectors.references.document import LastState, Reference
from specscope_collectors.references.final_norm import judge
from specscope_collectors.references.opening import DumpFile
from specscope_collectors.references.places import Places, places_of
from specscope_collectors.references.profiles import Summed, profiles_of
from specscope_collectors.references.reading import Dump, Refusals, is_known
from specscope_collectors.references.shapes import LAST_BY_COUNT, Sample
from specscope_collectors.references.showing import Shown
from specscope_collectors.references.sums import SlotSums, Table
from specscope_collectors.references.writers import POST_NORM, UNKNOWN, Writer

if TYPE_CHECKING:
    from specscope_collectors.references.building import Order

FEW_REQUESTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a build has read."""

    files: list[str]
    chosen: list[str]
    writer: Writer
    sample: Sample
    opened: DumpFile
    limits: list[float | None]
    token_ids: tuple[int, ...]
    table: Table
    sums: list[SlotSums]
    refused: Refusals
    tokens: int
    has_mask: bool
    digests: list[str]
    shown: Shown

    @property
    def requests(self) -> int:
        """How many were read."""
        return sum(bool(digest) for digest in self.digests)


def tell(order: Order, dump: Dump, read: Read) -> Reference:
    """Return the reference. Raises DumpError when the boundaries that were told do not fit."""
    sample = read.sample
    has_last = sample.last is not None
    places = places_of(
        len(sample.slots), has_last, read.writer, order.boundaries, order.manifest, order.draft
    )
    last = _last_state(read, places, order) if has_last else None
    boundaries = [*places.slots, *([last.boundary] if last is not None else [])]
    summed = Summed(
        hidden_size=sample.hidden_size, slots=len(sample.slots), token_ids=read.token_ids,
        table=read.table, sums=read.sums,
    )  # fmt: skip
    made = [profiles_of(summed, boundaries, order.made_ms, answers) for answers in (False, True)]
    manifest = order.manifest
    return Reference(
        name=order.name,
        made_ms=order.made_ms,
        tool=manifest.tool if manifest and manifest.tool else read.writer.name,
        container=read.opened.container,
        compression=read.opened.compression,
        model=manifest.model if manifest else "",
        dtype=(sample.slots[0] if sample.slots else sample.last).dtype.name,  # type: ignore[union-attr]
        hidden_size=sample.hidden_size,
        boundaries=places.slots,
        boundary_rule=places.rule,
        boundary_source=places.source,
        provenance={"layer_ids": ",".join(map(str, places.ids))} if places.ids else {},
        last=last,
        last_told_by=sample.last_rule,
        files=len(read.files),
        requests=read.requests,
        tokens=read.tokens,
        rows=read.table.rows,
        answer_rows=int(read.table.column("is_answer").sum()) if read.has_mask else None,
        budget_rows=order.budget_rows,
        seed=order.seed,
        fingerprint=_fingerprint(read),
        sink_limits=tuple(limit if limit is None or math.isfinite(limit) else None for limit in read.limits),
        token_ids=read.token_ids,
        refused=dict(read.refused.counts),
        notes=tuple(_notes(read, places, last)),
        profiles=tuple(made[0]),
        answer_profiles=tuple(made[1]),
        samples=tuple(read.shown.told(len(sample.slots), boundaries, read.limits)),
    )


def _last_state(read: Read, places: Places, order: Order) -> LastState:
    """A post-norm state is no boundary: the residual stream ends before the norm."""
    writer = read.writer
    if order.norm_weight is not None and "square" in read.table.columns:
        judged = judge(read.table.column("square"))
        norm, rule, median = judged.norm, judged.rule, judged.median
    elif writer.last_norm != UNKNOWN:
        norm, rule, median = writer.last_norm, f"not measured: {writer.name} writes it so", None
    else:
        norm, rule, median = UNKNOWN, "give --norm-weight to measure it", None
    return LastState(
        boundary=None if norm == POST_NORM else places.last, norm=norm, rule=rule, median_square=median,
        weight=b"" if order.norm_weight is None else order.norm_weight.astype("<f4").tobytes(),
    )  # fmt: skip


def _fingerprint(read: Read) -> str:
    digest = hashlib.sha256("\0".join(read.files).encode("utf-8", "surrogateescape"))
    for name, found in sorted(zip(read.chosen, read.digests, strict=True)):
        digest.update(f"\0{name}\0{found}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _notes(read: Read, places: Places, last: LastState | None) -> Iterator[str]:
    if not is_known(read.writer):
        yield "No tool that is known writes such files; what they hold was told by its shape alone."
    if not read.has_mask:
        yield (
            "The files hold no loss mask (one may stand in a data set beside them), so that "
            "questions and answers "
            "are not told apart."
        )
    if not places.source:
        yield f"Boundaries are {places.rule}; give --boundaries or --draft-config."
    if last is not None and read.sample.last_rule == LAST_BY_COUNT:
        yield "Of four states the fourth is taken for the last layer's, as writers for EAGLE-3 do."
    if any(limit is None for limit in read.limits):
        yield "Too few rows to know which are sinks: none is told apart."
    if read.requests < FEW_REQUESTS:
        yield f"Requests read: {read.requests}. What differs between requests is hardly known."
    yield from (f"Left out: {example}" for example in read.refused.examples)
