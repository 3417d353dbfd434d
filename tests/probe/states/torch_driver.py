"""Run by `test_reduction.py` with the rig's Python, which has torch: reductions against float64.

Prints as JSON how far the device's arithmetic (here: the CPU's) is from plain numpy in float64.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from specscope_probe.states.device import Reducer
from specscope_probe.states.forwards import accepted_phases
from specscope_probe.states.projection import SIZE, matrix

H, SLOTS, ROWS = 192, 3, 40
LIMITS = np.array([np.inf, 3.2, 2.9], np.float32)
IDS = (3, 5, 9)


def inputs() -> tuple[Any, Any, Any, Any]:
    """Return (states with a NaN, an infinite and a zero row, ids, positions, phases)."""
    generator = torch.Generator().manual_seed(4)
    states = torch.randn(ROWS, SLOTS * H, generator=generator).bfloat16() * 1.5
    states[7, 5], states[8, 200], states[9] = float("nan"), float("inf"), 0.0
    ids = torch.randint(0, 12, (ROWS,), generator=generator)
    positions = torch.arange(ROWS) // 2
    for row in (13, 22, 30):  # rows of a prefix that requests share
        ids[row], positions[row] = ids[12], positions[12]
    phases = 1 + torch.randint(0, 2, (ROWS,), generator=generator)
    phases[22] = phases[30] = phases[12]
    return states, ids, positions, phases


def expected(states: Any, ids: Any, positions: Any, phases: Any, chosen: Any) -> dict[str, Any]:
    """Return the sums in float64, the plain way."""
    rows = states.view(ROWS, SLOTS, H)[torch.from_numpy(chosen)].double().numpy()
    with np.errstate(divide="ignore"):
        norms = np.linalg.norm(rows, axis=-1)
        ln_norms = np.log(norms)
    projection = matrix(H).astype(np.float64)
    channels, distinct, seen = np.zeros((3, SLOTS, 3, H)), np.zeros((3, SLOTS)), set()
    tokens = np.zeros((3, SLOTS, len(IDS) + 1, SIZE))
    for place, row in enumerate(chosen.tolist()):
        stands = int(phases[row]), int(positions[row]), int(ids[row])
        is_new = stands not in seen
        seen.add(stands)
        for slot in range(SLOTS):
            norm = norms[place, slot]
            is_body = positions[row] >= 4 and np.isfinite(norm) and norm > 0
            if is_body and ln_norms[place, slot] <= LIMITS[slot]:
                unit = rows[place, slot] / norm
                phase = int(phases[row])
                channels[phase, slot] += np.stack((unit, unit**2, is_new * rows[place, slot] ** 2))
                distinct[phase, slot] += is_new
                token = int(ids[row])
                tokens[phase, slot, IDS.index(token) if token in IDS else len(IDS)] += unit @ projection
    return {"ln_norms": ln_norms, "channels": channels, "tokens": tokens, "distinct": distinct}


def reduce(
    states: Any, ids: Any, positions: Any, phases: Any, projection: Any, parts: list[Any], device: str
) -> tuple[Any, ...]:
    """Reduce rows in so many forwards; return (ln norms, channels, tokens, distinct rows)."""
    reducer = Reducer(torch, device, H, SLOTS, 3, ROWS, projection)
    reducer.set_token_ids(IDS)
    ln_norms = []
    for chosen in parts:
        opened = reducer.begin(chosen, LIMITS, (1, 2), ids, positions, phases)
        rows = states.index_select(0, opened.indices).view(len(chosen), SLOTS, H)
        for first in range(SLOTS):  # slot by slot, as a calibration does, and all at once
            if len(parts) == 1:
                reducer.add(opened, first, rows[:, first : first + 1].clone())
        if len(parts) > 1:
            reducer.add(opened, 0, rows)
        buffer = reducer.finish(opened)
        wait_for(device)
        ln_norms.append(np.array(buffer.ln_norms[: len(chosen)].numpy()))
        reducer.give_back(buffer)
    sums = reducer.take_sums()
    again = reducer.take_sums()
    wait_for(device)
    assert not again.channels.any()
    assert not again.tokens.any()
    assert not again.distinct.any()
    return np.concatenate(ln_norms), sums.channels.numpy(), sums.tokens.numpy(), sums.distinct.numpy()


def off_by(found: Any, wanted: Any) -> float:
    """Return the largest difference, relative to the largest value."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def wait_for(device: str) -> None:
    """Let the device finish, which the probe never waits for."""
    if device != "cpu":
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")


def reductions(device: str = "cpu") -> dict[str, float]:
    """Return how far two ways of reducing are from float64."""
    given = inputs()
    before = given[0].clone()
    chosen = np.arange(1, ROWS, dtype=np.int64)
    wanted = expected(*given, chosen)
    there, found = [each.to(device) for each in (*given, torch.from_numpy(matrix(H)))], {}
    wait_for(device)
    for name, parts in (("slots", [chosen]), ("forwards", [chosen[:11], chosen[11:]])):
        with torch.inference_mode():
            ln_norms, channels, tokens, distinct = reduce(*there, parts, device)
        finite = np.isfinite(wanted["ln_norms"])
        assert (np.isfinite(ln_norms) == finite).all()
        assert (np.isneginf(ln_norms) == np.isneginf(wanted["ln_norms"])).all()
        found[f"{name} ln norms"] = off_by(ln_norms[finite], wanted["ln_norms"][finite])
        found[f"{name} channels"] = off_by(channels, wanted["channels"])
        found[f"{name} distinct rows"] = off_by(distinct, wanted["distinct"])
        found[f"{name} tokens"] = off_by(tokens, wanted["tokens"])
    if device != "cpu":
        torch.cuda.set_sync_debug_mode("default")
    after = there[0].cpu().view(torch.int16)
    assert torch.equal(after, before.view(torch.int16)), "the engine's states changed"
    return found


def accepts() -> dict[str, list[int]]:
    """Return the phases that each kind of result gives to 3 requests of 4 rows."""
    chain = SimpleNamespace(accept_lens=torch.tensor([1, 3, 4], dtype=torch.int32))
    tree = SimpleNamespace(
        accept_index=torch.tensor([[0, 2, -1], [4, -1, -1], [8, 9, 11]], dtype=torch.int32)
    )
    first = (None, SimpleNamespace(accepted_indices=torch.tensor([0, 4, 5, 8])), None, False)
    return {
        "chain": accepted_phases(torch, chain, 12, 4, is_tree=False).tolist(),
        "tree": accepted_phases(torch, tree, 12, 4, is_tree=True).tolist(),
        "v1": accepted_phases(torch, first, 12, 4, is_tree=False).tolist(),
    }


def values_are_not_looked_at() -> str:
    """Reduce tensors that have shapes and no values, which whoever waits for a value cannot do."""
    states, ids, positions, phases = (each.to("meta") for each in inputs())
    with torch.inference_mode():
        reducer = Reducer(torch, "meta", H, SLOTS, 3, ROWS, matrix(H))
        reducer.set_token_ids(IDS)
        chosen = np.arange(1, ROWS, dtype=np.int64)
        opened = reducer.begin(chosen, LIMITS, (1, 2), ids, positions, phases)
        reducer.add(opened, 0, states.index_select(0, opened.indices).view(len(chosen), SLOTS, H))
        results = {
            "accept_lens": SimpleNamespace(accept_lens=torch.ones(3, dtype=torch.int32, device="meta")),
            "accept_index": SimpleNamespace(accept_index=torch.ones(3, 4, dtype=torch.int32, device="meta")),
        }
        for name, result in results.items():
            accepted_phases(torch, result, 12, 4, is_tree=name == "accept_index")
        first = (None, SimpleNamespace(accepted_indices=torch.ones(5, dtype=torch.int64, device="meta")))
        accepted_phases(torch, first, 12, 4, is_tree=False)
    try:
        states.sum().item()
    except RuntimeError:
        return "done"
    return "a value could be looked at"


if __name__ == "__main__":
    sys.stdout.write(
        "SEEN "
        + json.dumps({"off": reductions(), "accepts": accepts(), "blind": values_are_not_looked_at()})
        + "\n"
    )
