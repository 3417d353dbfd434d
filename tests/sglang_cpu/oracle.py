"""What the rig's engine must have counted, computed from the output tokens of greedy requests alone.

In the rig's models the right next token is a fixed permutation of the current one, and a draft is wrong
exactly when the right token lies outside the draft's vocabulary. So each cycle is known: it starts at the
last emitted token, keeps the leading drafts whose tokens the draft can say, and emits these and the bonus
token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one request or of many; they add."""

    requests: int
    generated_tokens: int
    verify_calls: int
    accepted_drafts: int
    """Drafts that the target agreed with, those past the stop included: they are verified, then cut off."""
    histogram: tuple[int, ...]
    """Cycles by accepted drafts, 0…K."""
    surplus_tokens: int
    """Tokens emitted past the stop."""

    def __add__(self, other: Counts) -> Counts:
        """Add two counts of the same K. Raises ValueError when K differs."""
        pairs = zip(self.histogram, other.histogram, strict=True)
        return Counts(
            self.requests + other.requests,
            self.generated_tokens + other.generated_tokens,
            self.verify_calls + other.verify_calls,
            self.accepted_drafts + other.accepted_drafts,
            tuple(mine + theirs for mine, theirs in pairs),
            self.surplus_tokens + other.surplus_tokens,
        )

    @property
    def derived_accepted_drafts(self) -> int:
        """What is left for accepted drafts when only tokens, requests and verify calls are known.

        Each request's first token comes from the prefill and each verify call gives one bonus token; what the
        stop cut off is missing. So this is ``accepted_drafts - surplus_tokens``.
        """
        return self.generated_tokens - self.requests - self.verify_calls


class NotGreedyError(ValueError):
    """The tokens are not what the target says greedily, so nothing can be computed from them."""


@cache
def _vocabulary() -> tuple[tuple[int, ...], frozenset[int]]:
    known = json.loads((Path(__file__).parent / "vocabulary.json").read_text(encoding="utf-8"))
    return tuple(known["next_token"]), frozenset(known["draft_vocabulary"])


def count_request(output_ids: Sequence[int], num_steps: int) -> Counts:
    """Return the counts of one greedy request that gave these tokens with drafts of depth ``num_steps``.

    Raises NotGreedyError when a token is not the successor of the one before it.
    """
    next_token, draft_vocabulary = _vocabulary()
    for position, (token, after) in enumerate(pairwise(output_ids)):
        if next_token[token] != after:
            raise NotGreedyError(
                f"token {position + 1} is {after}; greedily {token} is followed by {next_token[token]}"
            )
    histogram = [0] * (num_steps + 1)
    emitted, token = 1, output_ids[0]
    while emitted < len(output_ids):
        accepted = 0
        token = next_token[token]
        while accepted < num_steps and token in draft_vocabulary:
            accepted += 1
            token = next_token[token]
        histogram[accepted] += 1
        emitted += accepted + 1
    calls = sum(histogram)
    drafts = sum(accepted * cycles for accepted, cycles in enumerate(histogram))
    return Counts(1, len(output_ids), calls, drafts, tuple(histogram), emitted - len(output_ids))


def count_requests(outputs: Iterable[Sequence[int]], num_steps: int) -> Counts:
    """Return the sum over greedy requests; of none, zeros."""
    total = Counts(0, 0, 0, 0, (0,) * (num_steps + 1), 0)
    for output_ids in outputs:
        total += count_request(output_ids, num_steps)
    return total
