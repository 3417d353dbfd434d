"""The cycle model of the demo engine: what one speculative cycle accepts and how long it takes. Pure.

Everything here is invented, but it hangs together. Two assumptions (the draft is a chain, and its k-th
conditional acceptance α_k does not depend on the depth K) and six wanted readings fix every constant:

* α = (0.76, 0.68, 0.57, 0.55, 0.534), so S = (0.760, 0.517, 0.295, 0.162, 0.087) and τ(K) = 1 + ΣS_k is
  1.760, 2.277, 2.571, 2.733, **2.820** for K = 1…5. An engine that prints τ/D reads 2.82 / 6 = **47 %**.
* The dead draft accepts each token with the same small chance a: τ = 1 + a + a² + … = **1.12**, so a =
  0.10714. An engine that prints τ/D reads 1.12 / 6 = **19 %**; the strict rate is 0.12 / 5 = 2.4 %.
* One request without speculation: **88.8 tok/s**, so T_ar = 1000 / 88.8 = 11.26 ms.
* T_d = 0.36 ms per draft step, T_e = 0.54 ms, T_o = 0.42 ms. A cycle of depth K runs K−1 draft steps (the
  draft-extend of the cycle before supplies the first draft): at K = 5 all but verify takes 4·0.36 + 0.96 =
  2.40 ms.
* Verify is **95 %** of the cycle at K = 5 before the network is tuned: T_v(6) = 19·2.40 = 45.60 ms, T_c =
  48.00 ms. The tuning cuts verify by **27 %**: T_v(6) = 33.29 ms, T_c = 35.69 ms.
* **94 tok/s** at K = 2: T_c = 1000·2.277 / 94 = 24.22 ms, so T_v(3) = 24.22 − 0.36 − 0.96 = 22.90 ms.
* T_v is linear in D through those two points: 3.46 ms per further token, T_v(1) would be 15.98 ms. That is
  more than T_ar: verify goes through the extend kernels and samples at every position.

Read off, in tok/s, one request, tuned network:
K = 1 → 86.3, **2 → 94.0**, 3 → 91.7, 4 → 85.8, 5 → 79.0, none → 88.8 (before the tuning K = 5 → 58.7).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

HEALTHY = (0.76, 0.68, 0.57, 0.55, 0.534)
"""α_k of a draft that sees the hidden states it was trained on."""
DEAD = (0.10714,) * 5
"""α_k of a draft that is fed from the wrong layers."""

PLAIN_DECODE_MS = 1000 / 88.8
DRAFT_STEP_MS, DRAFT_EXTEND_MS, REST_MS = 0.36, 0.54, 0.42
VERIFY_SHARE, VERIFY_CUT = 0.95, 0.27
BEST_TOKENS_PER_SECOND = 94.0

JITTER = 0.03
"""Standard deviation of ln(time) of a phase."""
JITTER_MEAN = -JITTER * JITTER / 2
VERIFY_GROWTH, DRAFT_GROWTH, PLAIN_GROWTH = 0.01, 0.04, 0.03
"""Relative growth per further request in the batch; of verify per further request and verified token."""


def survival(alphas: Sequence[float], num_steps: int) -> list[float]:
    """Return S_1 … S_K: the chance that at least k drafts are accepted."""
    return list(accumulate(alphas[:num_steps], mul))


def accept_length(alphas: Sequence[float], num_steps: int) -> float:
    """Return τ = 1 + ΣS_k, tokens per cycle, bonus included."""
    return 1 + sum(survival(alphas, num_steps))


def rest_of_cycle_ms(num_steps: int) -> float:
    """Return draft, draft-extend and unattributed time of a cycle of one request (ms)."""
    return (num_steps - 1) * DRAFT_STEP_MS + DRAFT_EXTEND_MS + REST_MS


def _verify_line() -> tuple[float, float]:
    """Return T_v(1) and the cost of one more token on the tuned network (ms), as derived above."""
    at_six = rest_of_cycle_ms(5) * VERIFY_SHARE / (1 - VERIFY_SHARE) * (1 - VERIFY_CUT)
    at_three = 1000 * accept_length(HEALTHY, 2) / BEST_TOKENS_PER_SECOND - rest_of_cycle_ms(2)
    slope = (at_six - at_three) / 3
    return at_three - 2 * slope, slope


VERIFY_BASE_MS, VERIFY_PER_TOKEN_MS = _verify_line()


@dataclass(frozen=True, slots=True)
class Cycle:
    """Times of one step of the scheduler (ms). Without speculation only ``plain`` and ``rest`` are used."""

    draft: float = 0.0
    verify: float = 0.0
    extend: float = 0.0
    plain: float = 0.0
    rest: float = 0.0

    @property
    def device(self) -> float:
        """Return the time in which the device was busy (ms)."""
        return self.draft + self.verify + self.extend + self.plain

    @property
    def total(self) -> float:
        """Return T_c (ms)."""
        return self.device + self.rest


@dataclass(frozen=True, slots=True)
class CycleModel:
    """Acceptance and timing of one launch; ``num_steps`` = 0 means no speculation."""

    num_steps: int
    alphas: tuple[float, ...] = HEALTHY
    network_tuned: bool = True

    @property
    def num_draft_tokens(self) -> int:
        """Return D = K + 1, verified tokens per request and cycle."""
        return self.num_steps + 1

    @property
    def accept_length(self) -> float:
        """Return the expected τ."""
        return accept_length(self.alphas, self.num_steps)

    def mean_cycle(self, batch: int) -> Cycle:
        """Return the expected times of one step over ``batch`` requests."""
        more = batch - 1
        if not self.num_steps:
            plain = PLAIN_DECODE_MS - REST_MS
            return Cycle(plain=plain * (1 + PLAIN_GROWTH * more), rest=REST_MS * (1 + PLAIN_GROWTH * more))
        slow = 1.0 if self.network_tuned else 1 / (1 - VERIFY_CUT)
        verify = (VERIFY_BASE_MS + VERIFY_PER_TOKEN_MS * self.num_steps) * slow
        small = 1 + DRAFT_GROWTH * more
        return Cycle(
            draft=(self.num_steps - 1) * DRAFT_STEP_MS * small,
            verify=verify * (1 + VERIFY_GROWTH * self.num_draft_tokens * more),
            extend=DRAFT_EXTEND_MS * small,
            rest=REST_MS * small,
        )

    def sample_cycle(self, rng: random.Random, batch: int) -> Cycle:
        """Draw the times of one step: each phase its mean times a log-normal of mean 1."""
        mean = self.mean_cycle(batch)
        gauss, exp = rng.gauss, math.exp
        return Cycle(
            mean.draft * exp(gauss(JITTER_MEAN, JITTER)),
            mean.verify * exp(gauss(JITTER_MEAN, JITTER)),
            mean.extend * exp(gauss(JITTER_MEAN, JITTER)),
            mean.plain * exp(gauss(JITTER_MEAN, JITTER)),
            mean.rest * exp(gauss(JITTER_MEAN, JITTER)),
        )

    def sample_accepted(self, rng: random.Random, strain: float = 1.0) -> int:
        """Draw d, the accepted drafts of one request in one cycle, 0…K.

        ``strain`` is the power to which the request raises α. A dead draft is as dead for every request.
        """
        accepted = 0
        power = 1.0 if self.alphas == DEAD else strain
        while accepted < self.num_steps and rng.random() < self.alphas[accepted] ** power:
            accepted += 1
        return accepted
