"""Accepted drafts, counted where the engine itself turns them into tokens, twice:

* ``worker``: every row that was verified, those of requests that had already finished (overlap schedules one
  cycle too many), of retracted requests and of health checks included. It is the work that was done.
* ``requests``: the rows that the engine credits to requests; sums equal the requests' own ``meta_info``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from specscope_probe.parts import Part
from specscope_probe.seams import RESULTS
from specscope_probe.wrapping import Seam

MAX_POSITIONS = 32
"""Draft positions that are counted; rows that were offered more, or accept more, are refused and counted."""

HEALTH_CHECK = "HEALTH_CHECK"
"""How the engine's own health-check requests are named, in all versions."""

UNCOUNTED_LOOKUPS = "this version keeps the counts of looked-up drafts on the device"

CHAIN, TREE, LOOKUP = "chain", "tree", "lookup"
"""How drafts hang together. In a lookup (n-grams) how deep the offer went is not known, so nothing counts as
proposed there."""


@dataclass(slots=True)
class AcceptCounts:
    """Counts of one view. Index of the lists: accepted drafts d, or draft position (from 1)."""

    by_accepted: list[int] = field(default_factory=lambda: [0] * (MAX_POSITIONS + 1))
    by_depth: list[int] = field(default_factory=lambda: [0] * (MAX_POSITIONS + 1))
    """Rows by K, the depth that was offered; all at 0 for lookups."""

    def add(self, rows_by_accepted: Mapping[int, int], rows: int, depth: int) -> None:
        """Add the rows of one batch; all of them were offered drafts to the same depth."""
        self.by_depth[depth] += rows
        for drafts, count in rows_by_accepted.items():
            self.by_accepted[drafts] += count


def at_least(histogram: Sequence[int]) -> list[int]:
    """Return for 1, 2, … how many rows of a histogram stand at that index or beyond, up to the last row.

    Of a histogram of accepted drafts these are the drafts accepted at each position; of one of offered
    depths, the drafts proposed there.
    """
    total, counts = 0, []
    for rows in reversed(histogram[1:]):
        total += rows
        counts.append(total)
    while counts and not counts[0]:
        del counts[0]
    return counts[::-1]


class AcceptCounter:
    """Listens where results become known on the CPU. Never touches a tensor of the device."""

    def __init__(self, part: Part, worker: Any) -> None:
        self.part = part
        self.worker_view = AcceptCounts()
        self.request_view = AcceptCounts()
        self.drafts = drafts_of(worker)
        self._worker = worker
        self._credited: list[bool] | None = None

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen at the results, and at the worker's return, where V1 workers know the counts already."""
        seams["cycle"].listen(self.part, after=self._after_cycle)
        if "results" in seams:
            seams["results"].listen(self.part, before=self._before_results, after=self._after_results)

    def _before_results(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        _, batch = _result_and_batch(args, kwargs)
        self._credited = [
            not (request.finished() or request.is_retracted or is_health_check(request))
            for request in batch.reqs
        ]

    def _after_results(self, now: int, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        result, _batch = _result_and_batch(args, kwargs)
        credited, self._credited = self._credited, None
        accepted = accepted_drafts(result)
        if accepted is not None and credited is not None:
            self.count(accepted, credited, self._depth(result))

    def _after_cycle(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        accepted = getattr(result, "accept_length_per_req_cpu", None)  # V1: without the bonus token
        if accepted is not None:
            batch = args[0] if args else next(iter(kwargs.values()))
            credited = [not is_health_check(request) for request in batch.reqs]
            self.count(accepted, credited, self._depth(result))

    def count(self, accepted: Sequence[int], credited: Sequence[bool], depth: int) -> None:
        """Add the rows of one batch. Rows that cannot be are refused and counted, all views alike."""
        most = depth if self.drafts != LOOKUP else MAX_POSITIONS
        if len(accepted) != len(credited) or not 0 <= depth <= MAX_POSITIONS:
            self.part.refused += len(accepted)
            return
        if accepted and not (min(accepted) >= 0 and max(accepted) <= most):
            possible = [0 <= drafts <= most for drafts in accepted]
            self.part.refused += len(possible) - sum(possible)
            accepted, credited = list(compress(accepted, possible)), list(compress(credited, possible))
        rows = Counter(accepted)
        self.worker_view.add(rows, len(accepted), depth)
        if not all(credited):
            accepted = list(compress(accepted, credited))
            rows = Counter(accepted)
        self.request_view.add(rows, len(accepted), depth)

    def _depth(self, result: Any) -> int:
        """Return K of the cycle that gave ``result``; 0 when it is not known (lookups)."""
        if self.drafts == LOOKUP:
            return 0
        if self.drafts == TREE:
            return int(self._worker.speculative_num_steps)
        # An adaptive worker may have another K by now; the result keeps D of its cycle, and D = K + 1.
        recorded = getattr(result, "speculative_num_draft_tokens", None)
        return int(recorded if recorded is not None else self._worker.speculative_num_draft_tokens) - 1


def accepted_drafts(result: Any) -> Sequence[int] | None:
    """Return accepted drafts per row, without the bonus token, of a result that is on the CPU.

    The engine's names: ``num_correct_drafts_per_req_cpu`` (0.5.13 and newer) and before that
    ``accept_length_per_req_cpu`` exclude it, ``accept_lens`` includes it.
    """
    for name in ("num_correct_drafts_per_req_cpu", "accept_length_per_req_cpu"):
        counts: Sequence[int] | None = getattr(result, name, None)
        if counts is not None:
            return counts
    lengths = getattr(result, "accept_lens", None)
    if lengths is None or not lengths.is_cpu:
        return None
    return [length - 1 for length in lengths.tolist()]


def drafts_of(worker: Any) -> str:
    """Return how the drafts of a worker hang together."""
    if any(hasattr(worker, name) for name in ("ngram_corpus", "ngram_cache")):
        return LOOKUP
    return TREE if (getattr(worker, "topk", None) or 1) > 1 else CHAIN


def why_uncounted(worker: Any, results_attribute: str | None) -> str | None:
    """Return why accepted drafts of this worker cannot be had without waiting for the device; None: they can.

    Up to 0.5.10 the worker that looks drafts up hands its counts over on the device and resolves nothing.
    """
    if drafts_of(worker) == LOOKUP and results_attribute != RESULTS.attributes[0]:
        return UNCOUNTED_LOOKUPS
    return None


def is_health_check(request: Any) -> bool:
    """Say whether the engine asks itself this, to see whether it lives."""
    return str.startswith(request.rid, HEALTH_CHECK)


def _result_and_batch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return both, with or without ``self`` in front."""
    found = [*args, *kwargs.values()][-2:]
    first, second = found
    return (second, first) if hasattr(first, "reqs") else (first, second)
