"""What rejected drafts cost, and what a millisecond or a point of acceptance would give."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.acceptance.schemas import Number
from specscope_server.acceptance.statistics import Ratio
from specscope_server.models import Launch
from specscope_server.timing.facts import Facts
from specscope_server.timing.measure import UNKNOWN_WIDTH, Timed, width_of
from specscope_server.timing.phases import TITLES, Phase
from specscope_server.timing.schemas import Sensitivity, Waste
from specscope_server.timing.statistics import (
    acceptance_ceiling,
    chain_length,
    constant_alpha,
    faster_rate,
    length_of,
    rejected_share,
    total,
)
from specscope_server.timing.timed_numbers import number

SAVED_MS = 1.0
ALPHA_POINT = 0.01
FIXED = (Phase.IDLE, Phase.WARM_UP)
TIME_FORMULA = "R' = R · T / (T − x): R tokens/s, T active ms per cycle, x ms saved; τ and batch as they are"
ALPHA_FORMULA = "R' = R · τ(α + 0.01) / τ(α), τ = 1 + Σ α₁…α_k; times as they are"


def waste_of(timed: Timed, facts: Facts | None) -> Waste:
    """Return the share of verified tokens that is rejected, GPU-seconds for them, and the width's ceiling."""
    width = _width(facts)
    length = facts.length.value if facts else None
    share = rejected_share(length, width) if length and width else None
    definition = "(D − τ) / D: of D tokens verified per request and cycle, τ are emitted"
    seconds, gpus = _wasted_seconds(facts, width, share)
    cost = (
        f"{gpus or '?'} GPUs × (verify time × (D − τ) / D + draft time × rejected / proposed drafts); each "
        "token charged alike, the marginal cost is lower"
    )
    return Waste(
        rejected_share=number(timed, facts, Ratio(share), "1", definition, "" if width else "D is not known"),
        gpu_seconds=number(timed, facts, Ratio(seconds), "GPU-seconds", cost),
        acceptance_ceiling=_ceiling(timed, facts),
    )


def _width(facts: Facts | None) -> float | None:
    if facts is None or facts.track.is_plain:
        return None
    widths = {width_of(one.launch, one.data) for one in facts.launches}
    text = widths.pop() if len(widths) == 1 else UNKNOWN_WIDTH
    return None if text == UNKNOWN_WIDTH else float(text)


def _wasted_seconds(
    facts: Facts | None, width: float | None, share: float | None
) -> tuple[float | None, int | None]:
    """Return (GPU-seconds, GPUs that work for one scheduler)."""
    if facts is None or share is None or width is None or width <= 1 or Phase.VERIFY not in facts.track.cycle:
        return None, None
    gpus = gpus_of(facts.launches[-1].launch)
    verify, draft = (total(facts.track.cycle[phase]) if phase in facts.track.cycle else 0.0
                     for phase in (Phase.VERIFY, Phase.DRAFT))  # fmt: skip
    length = facts.length.value or 0.0
    return gpus * (verify * share + draft * (width - length) / (width - 1)), gpus


def gpus_of(launch: Launch) -> int:
    """Return GPUs behind one scheduler's group; with DP attention the groups share them."""
    whole = (launch.tp_size or 1) * (launch.pp_size or 1)
    return max(whole // (launch.dp_size or 1), 1) if launch.enable_dp_attention else whole


def _ceiling(timed: Timed, facts: Facts | None) -> Number:
    launch = facts.launches[-1].launch if facts else None
    steps, width = (launch.num_steps, launch.num_draft_tokens) if launch else (None, None)
    value = acceptance_ceiling(steps, width) if steps and width else None
    definition = "K / (D − 1): most drafts of a tree lie off the path that is kept; 100 % for a chain"
    return number(timed, facts, Ratio(value), "1", definition)


def sensitivities(facts: Facts | None, alphas: Sequence[float]) -> list[Sensitivity]:
    """Return the gain of 1 ms less in each phase, and of a point more of each α; all extrapolated.

    ``alphas``: α_1 … α_K as measured; empty = not known by position, then one α that gives τ.
    """
    if facts is None or facts.rate is None or facts.active_ms is None:
        return []
    rows = [_of_phase(facts, phase) for phase in facts.track.phases if phase not in FIXED]
    if not facts.track.is_plain:
        rows.append(_of_alpha(facts, alphas))
    return [row for row in rows if row is not None]


def _of_phase(facts: Facts, phase: Phase) -> Sensitivity | None:
    rate, active_ms = facts.rate, facts.active_ms
    seconds = facts.track.seconds(phase)
    if rate is None or active_ms is None or seconds is None:
        return None
    own_ms = 1_000 * total(seconds) / facts.cycles
    if own_ms <= 0:
        return None
    saved = min(SAVED_MS, own_ms / 2)
    gain = faster_rate(rate, active_ms, saved)
    most = faster_rate(rate, active_ms, own_ms)
    return Sensitivity(
        name=phase,
        title=TITLES[phase],
        change=f"{saved:.2g} ms less per cycle",
        tokens_per_second=None if gain is None else gain - rate,
        relative=None if gain is None else gain / rate - 1,
        most=None if most is None else most / rate - 1,
        formula=TIME_FORMULA,
    )


def _of_alpha(facts: Facts, alphas: Sequence[float]) -> Sensitivity | None:
    launch = facts.launches[-1].launch
    length, steps = facts.length.value, launch.num_steps
    if not length or not steps or (launch.eagle_topk or 1) > 1 or facts.rate is None:
        return None
    if len(alphas) == steps:
        better = length_of([min(alpha + ALPHA_POINT, 1.0) for alpha in alphas]) / length_of(alphas)
    else:
        alpha = constant_alpha(length, steps)
        if alpha is None:
            return None
        better = chain_length(min(alpha + ALPHA_POINT, 1.0), steps) / length
    return Sensitivity(
        name="alpha",
        title="acceptance α",
        change="1 point more of every αₖ",
        tokens_per_second=facts.rate * (better - 1),
        relative=better - 1,
        most=(steps + 1) / length - 1,
        formula=ALPHA_FORMULA,
    )
