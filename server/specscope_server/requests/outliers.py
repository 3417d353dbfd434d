"""Find the requests that stand apart from their peers: of the same launch and depth, in the same window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Floats
from specscope_server.requests.population import Population, matrix_of
from specscope_server.requests.statistics import (
    FALSE_ALARMS,
    MIN_CYCLES,
    MIN_PEERS,
    Peers,
    is_outlier,
    log_chance,
    peers_of,
)

RULE = (
    "A request stands apart when its accept length is so far from that of its launch and depth that, among "
    "all requests judged at once, one such request is to be expected by chance less than "
    f"{FALSE_ALARMS:.0%} of the time (Chernoff's bound from the cycles of its peers, widened by how much "
    f"requests differ, both sides, Bonferroni). Requests of fewer than {MIN_CYCLES} cycles, or with fewer "
    f"than {MIN_PEERS} peers, are not judged."
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of each request of a population; all arrays have shape (requests,)."""

    judged: NDArray[np.bool_]
    log_chances: Floats
    """ln of the chance bound; 0 where not judged."""
    expected: Floats
    """τ of the peers, NaN where not judged."""
    outlying: NDArray[np.bool_]

    def low(self, lengths: Floats) -> NDArray[np.bool_]:
        """Return the outliers that accept less than their peers."""
        return np.asarray(self.outlying & (lengths < self.expected))

    def high(self, lengths: Floats) -> NDArray[np.bool_]:
        """Return the outliers that accept more than their peers."""
        return np.asarray(self.outlying & (lengths > self.expected))


def judge(population: Population) -> Judgement:
    """Judge every request that can be."""
    n = len(population.rows)
    judged, chances, expected = np.zeros(n, bool), np.zeros(n), np.full(n, np.nan)
    for (_, depth), places in population.groups.items():
        members = np.array(places)[population.cycles[places] >= MIN_CYCLES]
        peers = _peers(population, depth, members)
        if peers is not None:
            judged[members] = True
            expected[members] = 1 + peers.mean
            chances[members] = log_chance(peers, population.accepted[members], population.cycles[members])
    outlying = judged & is_outlier(chances, int(judged.sum()))
    return Judgement(judged, chances, expected, outlying)


def _peers(population: Population, depth: int, members: NDArray[np.int64]) -> Peers | None:
    """Return what the members have in common; None when they are too few, or none has a histogram."""
    if len(members) < MIN_PEERS:
        return None
    total = matrix_of([population.rows[place] for place in members], depth).sum(axis=0)
    if not total.sum():
        return None
    return peers_of(total, population.accepted[members], population.cycles[members])
