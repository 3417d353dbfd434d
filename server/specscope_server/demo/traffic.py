"""Who asks the demo engine: three tenants whose requests differ in length and in how well they are drafted.

A request has a strain s: its k-th conditional acceptance is α_k to the power of s. 1 is the launch's own α,
below 1 is easier to draft (code repeats itself), above 1 harder. Prompts of over 2,048 tokens strain the
draft more the longer they are, which the tenant with long documents feels. One request in a hundred runs into
a loop (nearly every draft is right: suspiciously good), one in a hundred is noise to the draft.

The strain of ``code`` is chosen so that all together accept what the launch's α say, within 1 %: the means of
tokens and of tokens / τ over the requests give τ = 2.82 at K = 5 and 2.56 at K = 3.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

EASY_CONTEXT_TOKENS = 2_048
STRAIN_PER_DOUBLING = 0.3
ODD_SHARE, LOOP_STRAIN, NOISE_STRAIN = 0.01, 0.01, 12.0
LONGEST_PROMPT, LONGEST_OUTPUT = 16_000, 500


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of those who ask. Lengths are log-normal, by the mean and deviation of ln(tokens)."""

    name: str
    share: float
    prompt: tuple[float, float]
    output: tuple[float, float]
    strain: float = 1.0


TENANTS = (
    Tenant("assistant", 0.55, (6.5, 0.7), (5.0, 0.6)),
    Tenant("code", 0.28, (6.9, 0.6), (5.1, 0.6), strain=0.72),
    Tenant("archive", 0.17, (8.3, 0.5), (5.0, 0.6)),
)
BENCHMARK = "benchmark"
"""Tenant of the one user who measures; nothing strains its requests."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What one request asks for."""

    tenant: str
    prompt_tokens: int
    output_tokens: int
    strain: float


def draw(rng: random.Random) -> Draw:
    """Draw a request."""
    (tenant,) = rng.choices(TENANTS, [each.share for each in TENANTS])
    prompt = 1 + min(LONGEST_PROMPT, int(rng.lognormvariate(*tenant.prompt)))
    output = 8 + min(LONGEST_OUTPUT, int(rng.lognormvariate(*tenant.output)))
    odd = rng.random()
    strain = tenant.strain * context_strain(prompt)
    if odd < 2 * ODD_SHARE:
        strain = LOOP_STRAIN if odd < ODD_SHARE else NOISE_STRAIN
    return Draw(tenant.name, prompt, output, strain)


def context_strain(prompt_tokens: int) -> float:
    """Return by how much a long prompt strains the draft, 1 up to `EASY_CONTEXT_TOKENS`."""
    return 1 + STRAIN_PER_DOUBLING * max(0.0, math.log2(prompt_tokens / EASY_CONTEXT_TOKENS))
