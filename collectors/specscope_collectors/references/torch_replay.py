"""Replay texts of training dumps through the target in torch: all boundaries, without an engine.

Token ids and the choice of requests and rows are those of `building`, so that both speak of the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.boundary_notes import notes_of
from specscope_collectors.references.boundary_sums import BoundaryNorms, BoundarySums, common_ids
from specscope_collectors.references.choosing import choose_files, choose_rows
from specscope_collectors.references.document import BOUNDARIES, LastState, Reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.reading import Dump, Refusals
from specscope_collectors.references.shapes import Told
from specscope_collectors.references.torch_target import Target
from specscope_collectors.references.training_rows import RowsFile
from specscope_collectors.references.walking import files_of

RULE = "what every decoder layer and the final norm are given: boundary b is the stream after b layers"
PILOTS = 16
MOST_TOKENS = 2_048
ROWS_REQUESTS = 16
"""Requests of which rows are kept whole, for a replay through an engine."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOrder:
    """What the user wants."""

    dumps: tuple[Path, ...]
    name: str
    made_ms: int
    model: str
    budget_rows: int
    seed: int
    token_ids: tuple[int, ...] = ()
    rows_file: Path | None = None
    most_tokens: int = MOST_TOKENS


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids of one request of a dump."""

    root: Path
    name: str
    token_ids: NDArray[np.int64]


def texts_of(order: ReplayOrder, hidden_size: int, refused: Refusals) -> list[Text]:
    """Return requests of all dumps, in equal parts. Raises DumpError when none can be read."""
    found: list[list[Text]] = []
    for root in order.dumps:
        names = choose_files(files_of(root), order.budget_rows // len(order.dumps), order.seed)
        dump = Dump(root, Told(hidden_size, None))
        found.append(list(_of_one(dump, names, order.most_tokens, refused)))
    texts = [text for several in zip_unequal(found) for text in several]
    if not texts:
        raise DumpError(f"{order.dumps[0]}: no token ids could be read: {'; '.join(refused.examples)}")
    return texts


def _of_one(dump: Dump, names: Sequence[str], most_tokens: int, refused: Refusals) -> Iterator[Text]:
    for name in names:
        try:
            _, sample = dump.open(name)
        except DumpError as error:
            refused.add(name, error)
            continue
        if len(sample.token_ids):
            yield Text(dump.root, name, sample.token_ids[:most_tokens].astype(np.int64))


def zip_unequal(lists: Sequence[Sequence[Text]]) -> Iterator[list[Text]]:
    """Yield the first of each list, then the second, as far as there are such."""
    for place in range(max(map(len, lists), default=0)):
        yield [each[place] for each in lists if place < len(each)]


def replay(order: ReplayOrder, target: Target, tell: Tell = lambda done, total: None) -> Reference:
    """Return the reference; writes rows for replays, if wanted. Raises DumpError, OSError."""
    refused = Refusals()
    texts = texts_of(order, target.hidden_size, refused)
    token_ids = order.token_ids or common_ids(text.token_ids.tolist() for text in texts)
    norms = BoundaryNorms(target.boundaries)
    for text in texts[:PILOTS]:
        rows = choose_rows(len(text.token_ids), text.name, order.seed)
        norms.add(rows, target.states(text.token_ids.tolist(), rows))
    sums = BoundarySums(target.hidden_size, norms.limits(), token_ids)
    kept = RowsFile(target.hidden_size, target.boundaries) if order.rows_file is not None else None
    for done, text in enumerate(texts):
        tell(done, len(texts))
        rows = choose_rows(len(text.token_ids), text.name, order.seed)
        states = target.states(text.token_ids.tolist(), rows)
        sums.add(rows, text.token_ids[rows], states)
        if kept is not None and done < ROWS_REQUESTS:
            kept.add(text.name, text.token_ids, rows, states)
    tell(len(texts), len(texts))
    if kept is not None and order.rows_file is not None:
        kept.write(order.rows_file)
    return _told(order, target, sums, texts, refused)


def _told(
    order: ReplayOrder, target: Target, sums: BoundarySums, texts: Sequence[Text], refused: Refusals
) -> Reference:
    profiles = sums.profiles(order.made_ms)
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.name.encode("utf-8", "surrogateescape") + text.token_ids.astype("<i8").tobytes())
    limits = tuple(limit if limit is None or np.isfinite(limit) else None for limit in sums.limits)
    last = target.boundaries - 1
    return Reference(
        kind=BOUNDARIES, name=order.name, made_ms=order.made_ms, tool="replay in torch", container="dump",
        compression="none", model=order.model, dtype=target.dtype, hidden_size=target.hidden_size,
        boundaries=tuple(range(target.boundaries)), boundary_rule=RULE, boundary_source="the model in torch",
        last=LastState(boundary=last, norm="pre_norm", rule="what the final norm is given"),
        files=len(texts) + sum(refused.counts.values()), requests=len(texts),
        tokens=sum(len(text.token_ids) for text in texts), rows=sums.table.rows,
        budget_rows=order.budget_rows, seed=order.seed, fingerprint=digest.hexdigest(), sink_limits=limits,
        token_ids=sums.token_ids, refused=dict(refused.counts),
        notes=tuple(notes_of(len(texts), len(order.dumps), profiles)),
        provenance={
            "made_by": "torch replay", "model_class": target.model_class, **target.versions,
            "dumps": str(len(order.dumps)),
        },
        profiles=profiles,
    )  # fmt: skip
