"""Profiles of the demo's hidden states, as the probe and `specscope reference` make them (simulated)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import LastState, Reference
from specscope_collectors.references.projection import NAME, projection_of
from specscope_collectors.references.row_classes import sketch_of
from specscope_server.demo.info import MODEL_PATH
from specscope_server.demo.state_model import (
    HIDDEN_SIZE,
    LAYERS,
    Floats,
    Text,
    product,
    states_of,
    text_of,
)

TOKEN_IDS = tuple(range(32))
TRAINED = (3, 31, 59)
REFERENCE_ROWS, REFERENCE_REQUESTS = 1_024, 64
DAY_MS = 86_400_000
IDENTICAL = 1e-3
DEMO_TOOL = "specscope demo (simulated)"


def profile_of(states: Floats, text: Text, **place: Any) -> StateProfile:
    """Return the profile of rows of the class ``other``; ``place`` has time, span, phase, slot, boundary."""
    values = states.astype(np.float32).astype(np.float64)
    norms = np.linalg.norm(values, axis=1)
    units = values / norms[:, None]
    members = np.equal.outer(np.array(TOKEN_IDS), text.ids)
    counts = members.sum(axis=1)
    seen = np.flatnonzero(counts)
    vectors = product(product(members[seen].astype(np.float64), units), projection_of(HIDDEN_SIZE))
    return StateProfile(
        row_class="other", hidden_size=HIDDEN_SIZE, rows=len(values),
        requests=len(np.unique(text.requests)), ln_norms=sketch_of(np.log(norms).astype(np.float32)),
        token_ids=tuple(TOKEN_IDS[index] for index in seen), token_rows=tuple(counts[seen].tolist()),
        token_directions=_bytes(vectors), projection=NAME, direction_sum=_bytes(units.sum(axis=0)),
        direction_sum_of_squares=_bytes((units**2).sum(axis=0)),
        sum_of_squares=_bytes((values**2).sum(axis=0)), invariants=_invariants(values, text.ids), **place,
    )  # fmt: skip


def _invariants(values: Floats, ids: NDArray[np.int64]) -> dict[str, int]:
    """Compare neighbouring rows of one token id, as the probe does."""
    order = np.argsort(ids, kind="stable")
    first, second = order[:-1], order[1:]
    is_pair = ids[first] == ids[second]
    first, second = first[is_pair], second[is_pair]
    apart = np.linalg.norm(values[first] - values[second], axis=1)
    same = apart < IDENTICAL * np.linalg.norm(values[first], axis=1)
    return {
        "nonfinite_rows": 0, "zero_rows": 0, "duplicate_rows": 0, "equal_id_pairs": len(first),
        "equal_id_pairs_identical": int(same.sum()),
    }  # fmt: skip


def _bytes(array: Floats) -> bytes:
    return np.ascontiguousarray(array, "<f4").tobytes()


def references(now_ms: int) -> list[Reference]:
    """Return what the draft was trained on, and all boundaries of the target.

    They change once a day, so that demos on one database do not pile up versions.
    """
    made_ms = now_ms // DAY_MS * DAY_MS
    places = tuple(range(LAYERS + 1))
    training, mixed = (text_of(REFERENCE_ROWS, REFERENCE_REQUESTS, seed) for seed in (1, 2))
    slots = states_of(training, (*TRAINED, LAYERS))
    every = states_of(mixed, places)
    own = [
        profile_of(slots[place], training, phase="prefill", slot=slot, boundary=place, **_when(made_ms))
        for slot, place in enumerate(TRAINED)
    ]
    own.append(profile_of(slots[LAYERS], training, phase="prefill", boundary=LAYERS, **_when(made_ms)))
    all_of_them = [
        profile_of(every[place], mixed, phase="calibration", boundary=place, **_when(made_ms))
        for place in places
    ]
    return [
        _document("demo training dump", made_ms, "slots", TRAINED, own),
        _document("demo calibration", made_ms, "boundaries", places, all_of_them),
    ]


def _when(made_ms: int) -> dict[str, Any]:
    return {"time_ms": made_ms, "span_ms": 1, "labels": {}}


def _document(
    name: str, made_ms: int, kind: Literal["slots", "boundaries"], boundaries: Sequence[int],
    profiles: Sequence[StateProfile],
) -> Reference:  # fmt: skip
    is_slots = kind == "slots"
    rule = "b = X + 1 (what layer X puts out), of layers 2, 30 and 58" if is_slots else "all boundaries"
    return Reference(
        kind=kind, name=name, made_ms=made_ms, tool=DEMO_TOOL, container="simulated",
        compression="none", model=MODEL_PATH, dtype="float32", hidden_size=HIDDEN_SIZE,
        boundaries=tuple(boundaries), boundary_rule=rule, boundary_source="the demo's story",
        last=LastState(boundary=LAYERS, norm="pre_norm", rule="simulated") if is_slots else None,
        files=REFERENCE_REQUESTS, requests=REFERENCE_REQUESTS, tokens=REFERENCE_ROWS, rows=REFERENCE_ROWS,
        budget_rows=REFERENCE_ROWS, seed=1, fingerprint=f"demo-{kind}",
        sink_limits=(None,) * len(profiles), token_ids=TOKEN_IDS,
        notes=("Simulated by specscope demo: no model and no text is behind it.",),
        profiles=tuple(profiles),
        provenance={"layer_ids": "2,30,58"} if is_slots else {},
    )  # fmt: skip
