"""Which ranks should report on one address's ``/metrics``, and which do (pure).

Facts of SGLang, from its source: the leader of each tensor-parallel group publishes gauges, one for each
data-parallel rank and pipeline stage; with ``--enable-metrics-for-all-schedulers`` every scheduler does.
``dp_rank`` is absent without data parallelism. With DP attention the data-parallel ranks share the
tensor-parallel group and ``tp_rank`` counts through all of it. Up to 0.5.1 no rank is labelled. On several
nodes each node exports the ranks that run on it, on its own address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from specscope_server.kit.ranks import rank_number

LABELS_SINCE = (0, 5, 2)
MAX_RANKS = 4_096
SHOWN = 8
NO_LABELS = (
    "this engine version writes no rank labels: all data-parallel ranks share one series, and the last "
    "writer wins"
)
NOT_SAID = "the engine did not say its parallel sizes"
SEVERAL_NODES = "which data-parallel ranks run on this node is not known"
LEADERS = "only the leader of a tensor-parallel group reports; the other ranks run the same requests"
THIS_NODE = "only the ranks of this node; the other nodes have addresses of their own"

Rank = tuple[int, int, int | None]
"""(dp_rank, pp_rank, tp_rank); the last is None where only group leaders report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a launch says about its ranks; None = it did not say."""

    engine: str = "sglang"
    version: str | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    nodes: int | None = None
    node: int | None = None
    dp_attention: bool = False
    all_schedulers: bool = False
    """Every scheduler publishes gauges, not only the leaders."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the ranks that should report do."""

    reporting: int
    expected: int | None
    """None = that cannot be known; ``note`` says why."""
    missing: tuple[str, ...] = ()
    """The ranks that do not report, e.g. ``dp 3``."""
    note: str = ""
    can_tell: bool = True
    """False: the engine does not say which rank wrote what."""

    @property
    def is_complete(self) -> bool | None:
        """Whether all report; None when that cannot be known."""
        return None if self.expected is None or not self.can_tell else self.reporting >= self.expected

    @property
    def text(self) -> str:
        """Return e.g. ``8/8 ranks`` or ``6/8 ranks: missing dp 3, 5``."""
        if not self.can_tell:
            return f"{self.expected} ranks that cannot be told apart"
        if self.expected is None:
            return f"{self.reporting} rank{'s' * (self.reporting != 1)} of an unknown number"
        head = f"{self.reporting}/{self.expected} rank{'s' * (self.expected != 1)}"
        return f"{head}: missing {_joined(self.missing)}" if self.missing else head


def coverage(sizes: Sizes, label_sets: Iterable[Mapping[str, str]]) -> Coverage:
    """Compare the ranks that should report with the label sets that were read."""
    seen = {_rank_of(labels, sizes.all_schedulers) for labels in label_sets}
    reason = _unknown(sizes)
    if reason:
        return Coverage(len(seen), None, note=reason)
    expected = _expected(sizes)
    if len(expected) > 1 and _version(sizes.version) < LABELS_SINCE:
        return Coverage(len(seen), len(expected), note=NO_LABELS, can_tell=False)
    absent = sorted(expected - seen, key=_order)
    strange = len(seen - expected)
    notes = [
        LEADERS if _is_led(sizes) else "",
        THIS_NODE if (sizes.nodes or 1) > 1 else "",
        f"{strange} more report than the launch's sizes explain" if strange else "",
    ]
    missing = tuple(_named(rank, expected) for rank in absent)
    return Coverage(len(expected & seen), len(expected), missing, "; ".join(filter(None, notes)))


def _is_led(sizes: Sizes) -> bool:
    """Tell whether some ranks stay silent because the leader of their group speaks for them."""
    groups = (sizes.dp or 1) if sizes.dp_attention else 1
    return not sizes.all_schedulers and (sizes.tp or 1) > groups


def _unknown(sizes: Sizes) -> str:
    """Return why it cannot be known which ranks should report; '' when it can."""
    if sizes.engine != "sglang" or (sizes.tp is None and sizes.dp is None and sizes.pp is None):
        return NOT_SAID
    tp, dp, pp, nodes = (value or 1 for value in (sizes.tp, sizes.dp, sizes.pp, sizes.nodes))
    if tp * dp * pp > MAX_RANKS or nodes > MAX_RANKS or (sizes.dp_attention and tp % dp):
        return f"the sizes tp {tp}, dp {dp}, pp {pp} do not fit together"
    if nodes > 1 and dp > 1 and not sizes.dp_attention:
        return SEVERAL_NODES
    return ""


def _expected(sizes: Sizes) -> frozenset[Rank]:
    tp, dp, pp = (value or 1 for value in (sizes.tp, sizes.dp, sizes.pp))
    group = tp // dp if sizes.dp_attention else tp  # of the schedulers that attend together
    here_pp, here_tp = _on_this_node(sizes, tp, pp)
    found: set[Rank] = set()
    for stage in here_pp:
        for rank in range(dp):
            first = rank * group if sizes.dp_attention else 0
            members = range(first, first + group) if sizes.all_schedulers else (first,)
            found |= {
                (rank, stage, member if sizes.all_schedulers else None)
                for member in members
                if member in here_tp
            }
    return frozenset(found)


def _on_this_node(sizes: Sizes, tp: int, pp: int) -> tuple[range, range]:
    """Return the pipeline stages and tensor-parallel ranks of this node, as SGLang spreads them."""
    nodes, node = sizes.nodes or 1, sizes.node or 0
    stages = max(pp // nodes, 1)
    nodes_per_group = max(nodes // pp, 1)
    share = max(tp // nodes_per_group, 1)
    first_stage, first_rank = stages * (node // nodes_per_group), share * (node % nodes_per_group)
    return range(first_stage, first_stage + stages), range(first_rank, first_rank + share)


def _rank_of(labels: Mapping[str, str], all_schedulers: bool) -> Rank:
    member = rank_number(labels, "tp_rank") if all_schedulers else None
    return rank_number(labels, "dp_rank"), rank_number(labels, "pp_rank"), member


def _order(rank: Rank) -> tuple[int, int, int]:
    return rank[0], rank[1], rank[2] or 0


def _named(rank: Rank, expected: Iterable[Rank]) -> str:
    """Name a rank by the numbers that tell it from the others, e.g. ``dp 3`` or ``dp 3 tp 1``."""
    several = [len({other[place] for other in expected}) > 1 for place in range(3)]
    if several[2] and len({other[2] for other in expected}) == len(set(expected)):
        several = [False, False, True]  # with DP attention tp_rank alone names a scheduler
    parts = [f"{name} {rank[place]}" for place, name in enumerate(("dp", "pp", "tp")) if several[place]]
    return " ".join(parts) or "the only rank"


def _joined(names: Sequence[str]) -> str:
    """Return ``dp 3, 5`` where one word would be repeated."""
    shown, rest = names[:SHOWN], len(names) - SHOWN
    heads = {name.rpartition(" ")[0] for name in shown}
    head = next(iter(heads))
    if len(heads) == 1 and " " not in head and head:
        text = f"{head} " + ", ".join(name.rpartition(" ")[2] for name in shown)
    else:
        text = ", ".join(shown)
    return f"{text} and {rest} more" if rest > 0 else text


def _version(text: str | None) -> tuple[int, ...]:
    """Return ``(0, 5, 23)`` of ``0.5.23.post1``; an unknown version is taken for a new one."""
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*", text or "")
    return tuple(map(int, match[0].split("."))) if match else (999,)
