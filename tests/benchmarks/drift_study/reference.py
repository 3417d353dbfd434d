"""References of all boundaries from the states of pools, through the product's own code and file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.benchmarks.drift_study.pools import pool

from specscope_collectors.references.boundary_sums import BoundaryNorms, BoundarySums, common_ids
from specscope_collectors.references.document import Reference, packed, unpacked
from specscope_collectors.states.bank import Bank, Place, bank_of
from specscope_collectors.states.sums import sums_of

PILOTS = 16


def reference_bank(folder: Path, domains: Sequence[str]) -> Bank:
    """Return the bank of a reference of these domains, packed into a file and read again."""
    found = [pool(folder, f"trained {domain}").arrays for domain in domains]
    texts = [
        each["ids"][each["requests"] == n].tolist() for each in found for n in np.unique(each["requests"])
    ]
    boundaries, hidden_size = found[0]["states"].shape[1:]
    norms = BoundaryNorms(boundaries)
    for each in found:
        for number in range(PILOTS):
            rows = each["requests"] == number
            norms.add(each["positions"][rows], each["states"][rows].transpose(1, 0, 2).astype(np.float32))
    sums = BoundarySums(hidden_size, norms.limits(), common_ids(texts))
    for each in found:
        for number in np.unique(each["requests"]):
            rows = each["requests"] == number
            states = each["states"][rows].transpose(1, 0, 2).astype(np.float32)
            sums.add(each["positions"][rows], each["ids"][rows].astype(np.int64), states)
    profiles = unpacked(packed(_document(sums))).profiles
    others = [each for each in profiles if each.row_class == "other"]
    places = [Place(f"boundary {each.boundary}", each.boundary) for each in others]
    return bank_of(places, [sums_of(each) for each in others])


def _document(sums: BoundarySums) -> Reference:
    boundaries = len(sums.limits)
    return Reference(
        kind="boundaries", name="study", made_ms=1, tool="study", container="", compression="none", dtype="",
        hidden_size=sums.hidden_size, boundaries=tuple(range(boundaries)), boundary_rule="",
        boundary_source="", files=sums.requests, requests=sums.requests, tokens=sums.table.rows,
        rows=sums.table.rows, budget_rows=sums.table.rows, seed=0, fingerprint="",
        sink_limits=(None,) * boundaries, token_ids=sums.token_ids, profiles=sums.profiles(1),
    )  # fmt: skip
