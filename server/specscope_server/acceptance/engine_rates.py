"""Which definition a printed accept rate has, by version and checked against its own numbers (pure).

Facts (SGLang): up to the 0.5.2 line no rate is printed. The 0.5.8 line prints τ/D: the bonus token is in
the numerator, so a draft that is never right prints 1/D. From 0.5.15 on it is (τ − 1)/(D − 1): strict. For
versions in between, and unknown ones, the numbers decide: τ, rate and D come from the same window, so one
formula must fit. A version told from the names of the metrics is a lower bound: only from 0.5.15 on does it
fix the definition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from specscope_server.acceptance.statistics import Floats
from specscope_server.kit.versions import is_lower_bound, version_text

TOLERANCE = 0.012
"""Rates may be rounded to two decimals (±0.005), τ too (±0.005/D), and ranks are read at other times."""


DEPTHS = range(2, 65)
"""D that are tried where nobody told it."""
HALF_A_DIGIT, FITTING_SHARE = 0.005, 0.98
DISTINCT_LENGTHS = 3
"""With D unknown too, one or two pairs may fit a formula by chance."""
UNDETERMINED = "undetermined"
"""Stands for the formula of a rate whose definition cannot be told."""


class Formula(StrEnum):
    """Definitions of the printed rate."""

    WITH_BONUS = "τ/D"
    STRICT = "(τ−1)/(D−1)"
    DRAFTED = "accepted / proposed"
    NONE = "none"
    """This version prints no rate."""
    UNKNOWN = "unknown"
    """The version does not tell."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The definition in force, or None with the reason why it is undetermined."""

    formula: Formula | None
    reason: str
    contradicts: bool = False
    """The numbers contradict the version's formula (not merely too little to decide)."""
    is_checked: bool = True
    """False: the version alone tells the definition; there were no numbers to compare it with."""
    draft_tokens: int | None = None
    """D, where nobody told it and the numbers leave only one."""


VLLM_DECISION = Decision(
    Formula.DRAFTED, "vLLM prints accepted / drafted tokens of the interval", is_checked=False
)
"""Fact (vLLM): the log of its V1 engine prints counts, and their quotient; its metrics hold no rate."""


def release_of(version: str | None) -> tuple[int, int, int] | None:
    """Return (major, minor, patch) of ``0.5.8`` or ``0.5.8.post1``; None for pre-releases and other texts."""
    match = re.fullmatch(
        r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:\.post\d+)?(?:\+[\w.]+)?", version or "", re.ASCII
    )
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def formula_of_version(version: str | None, version_source: str | None = None) -> Formula:
    """Return what the version prints, as far as we have read its source."""
    release = release_of(version)
    if release is None or (is_lower_bound(version_source) and release < (0, 5, 15)):
        return Formula.UNKNOWN
    if release <= (0, 5, 2):
        return Formula.NONE
    if release == (0, 5, 8):
        return Formula.WITH_BONUS
    return Formula.STRICT if release >= (0, 5, 15) else Formula.UNKNOWN


def dilutes_with_prefill(version: str | None, version_source: str | None = None) -> bool | None:
    """Tell whether prefill batches count as cycles of one token in τ; None = not known for this version."""
    release = release_of(version)
    if release is None or (0, 5, 2) < release < (0, 5, 8):
        return None
    if release >= (0, 5, 8):
        return False
    return None if is_lower_bound(version_source) else True


def decide(
    version: str | None,
    accept_length: Floats,
    rate: Floats,
    draft_tokens: float | None,
    version_source: str | None = None,
) -> Decision:
    """Return the definition behind ``rate``.

    accept_length, rate: shape (samples,), pairs from the same windows, NaN = not observed. draft_tokens: D,
    None when it changed or is not known. version_source: who told the version, as `Launch.version_source`.
    """
    told = formula_of_version(version, version_source)
    shown = version_text(version, version_source)
    pairs = ~(np.isnan(accept_length) | np.isnan(rate))
    if draft_tokens is None and pairs.any() and told not in (Formula.WITH_BONUS, Formula.STRICT):
        return _by_any_depth(accept_length[pairs], rate[pairs], shown)
    if draft_tokens is None or draft_tokens <= 1 or not pairs.any():
        return _undecided_without_numbers(told, shown, draft_tokens)
    fits = _fitting(accept_length[pairs], rate[pairs], draft_tokens)
    if told in (Formula.UNKNOWN, Formula.NONE):
        return _by_numbers(fits, shown)
    if told in fits:
        return Decision(told, f"SGLang {shown} prints {told}, and its own numbers agree")
    other = f"; they would fit {fits[0]}" if fits else ""
    reason = f"SGLang {shown} prints {told}, but accept length, rate and D contradict that{other}"
    return Decision(None, reason, contradicts=True)


def strict_equivalent(formula: Formula | None, rate: float, draft_tokens: float | None) -> float | None:
    """Return the strict acceptance of the same windows; None when it cannot be known or would be no share."""
    if formula in (Formula.STRICT, Formula.DRAFTED):
        return rate
    if formula is not Formula.WITH_BONUS or draft_tokens is None or draft_tokens <= 1:
        return None
    strict = (draft_tokens * rate - 1) / (draft_tokens - 1)
    return strict if -1e-9 <= strict <= 1 + 1e-9 else None


def _undecided_without_numbers(told: Formula, shown: str | None, draft_tokens: float | None) -> Decision:
    if told in (Formula.WITH_BONUS, Formula.STRICT) and (draft_tokens is None or draft_tokens > 1):
        reason = f"the engine version says {told}; it could not be checked against τ and D"
        return Decision(told, reason, is_checked=False)
    version = f"the version, {shown}," if shown else "the version"
    return Decision(
        None, f"{version} does not tell the definition, and D or the numbers to decide are missing"
    )


def _fitting(accept_length: Floats, rate: Floats, draft_tokens: float) -> list[Formula]:
    expected = {
        Formula.WITH_BONUS: accept_length / draft_tokens,
        Formula.STRICT: (accept_length - 1) / (draft_tokens - 1),
    }
    # The median: one window read across an update must not overturn the rest.
    return [name for name, value in expected.items() if float(np.median(np.abs(value - rate))) <= TOLERANCE]


def _by_any_depth(accept_length: Floats, rate: Floats, shown: str | None) -> Decision:
    """Decide where nobody told D: one formula must fit with a whole D, and the other with none.

    Both formulas are linear in τ, so means over the same windows keep to them; what is left is rounding.
    """
    fits = {
        formula: [depth for depth in DEPTHS if _keeps_to(formula, depth, accept_length, rate)]
        for formula in (Formula.WITH_BONUS, Formula.STRICT)
    }
    chosen = [formula for formula, depths in fits.items() if depths]
    engine = f"SGLang {shown}" if shown else "the unknown engine version"
    if len(chosen) == 1 and len(np.unique(np.round(accept_length, 2))) < DISTINCT_LENGTHS:
        return Decision(
            None, f"too few different accept lengths of {engine} to tell the definition without D"
        )
    if len(chosen) == 1:
        low, high = fits[chosen[0]][0], fits[chosen[0]][-1]
        depth = f"D = {low}" if low == high else f"D from {low} to {high}"
        reason = f"accept length and rate of {engine} fit {chosen[0]} only, with {depth}"
        return Decision(chosen[0], reason, draft_tokens=low if low == high else None)
    told = "both definitions" if chosen else "neither definition"
    return Decision(None, f"accept length and rate of {engine} fit {told} with a whole D from 2 to 64")


def _keeps_to(formula: Formula, depth: int, accept_length: Floats, rate: Floats) -> bool:
    """Return whether nearly all pairs, each rounded to two decimals, can be of this formula and D."""
    least, width = (0, depth) if formula is Formula.WITH_BONUS else (1, depth - 1)
    within = np.abs((accept_length - least) / width - rate) <= HALF_A_DIGIT * (1 + 1 / width) + 1e-9
    return bool(np.mean(within & (accept_length <= depth + 1 + HALF_A_DIGIT)) >= FITTING_SHARE)


def _by_numbers(fits: list[Formula], shown: str | None) -> Decision:
    engine = f"SGLang {shown}" if shown else "the unknown engine version"
    if len(fits) == 1:
        return Decision(fits[0], f"accept length, rate and D of {engine} fit {fits[0]} only")
    if fits:
        return Decision(
            None, f"accept length, rate and D of {engine} fit both definitions, so neither is chosen"
        )
    return Decision(None, f"accept length, rate and D of {engine} fit no known definition", contradicts=True)
