"""What the engine's objects say of one forward, the same for all versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_probe.accepts import is_health_check
from specscope_probe.states.requests import numbers_of

PREFILL_MODE, VERIFY_MODE = "EXTEND", "TARGET_VERIFY"


class UnknownAcceptsError(LookupError):
    """This version does not say which rows of a tree it accepted."""


def forward_batch_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the batch that a model runner was given."""
    return args[0] if args else kwargs["forward_batch"]


def states_of(result: Any) -> Any:
    """Return the states that a forward of the target handed out; None: none."""
    output = getattr(result, "logits_output", result)  # up to 0.5.2 the runner returns the output itself
    return getattr(output, "hidden_states", None)


def extend_lengths(forward_batch: Any) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return (cached, new) tokens of each request of a prefill; None: not known on the CPU."""
    prefixes, lengths = forward_batch.extend_prefix_lens_cpu, forward_batch.extend_seq_lens_cpu
    if not isinstance(prefixes, list) or not isinstance(lengths, list) or len(prefixes) != len(lengths):
        return None
    return prefixes, lengths


def requests_of(batch: Any, requests: int) -> tuple[list[bool], NDArray[np.int64] | None]:
    """Return for so many requests which are health checks, and a number for each; None: not known."""
    found = getattr(batch, "reqs", None)
    if found is None or len(found) != requests:
        return [False] * requests, None
    return [is_health_check(request) for request in found], numbers_of(found)


def accepted_phases(torch: Any, result: Any, rows: int, depth: int, *, is_tree: bool) -> Any:
    """Return for each row of a verify forward 1 if it was accepted, else 2; without waiting for anything.

    V1 hands out the accepted rows themselves; V2 counts per request, with the bonus token, and row d of a
    chain is accepted iff d is less; a tree's rows stand in ``accept_index``, padded with −1.
    """
    if isinstance(result, tuple):
        indices = result[1].accepted_indices.long().clamp(0, rows)
    elif is_tree:
        indices = getattr(result, "accept_index", None)
        if indices is None:
            raise UnknownAcceptsError("this version does not say which rows of a tree it accepted")
        indices = torch.where(indices < 0, rows, indices).reshape(-1).long().clamp(max=rows)
    else:
        lengths = result.accept_lens.to(torch.int64)
        depths = torch.arange(depth, device=lengths.device)
        return torch.where(depths < lengths.unsqueeze(1), 1, 2).reshape(-1)
    phases = torch.full((rows + 1,), 2, dtype=torch.int64, device=indices.device)
    return phases.index_fill_(0, indices, 1)[:rows]
