"""What keeps a number from being believed as it stands: contradictions, bounds, launches left out (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.acceptance.counts import constant_draft_tokens, counts_drafts, has_counts, totals
from specscope_server.acceptance.engine_rates import release_of
from specscope_server.acceptance.gather import LaunchData
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.schemas import Evidence, Number, NumberState
from specscope_server.kit.versions import is_lower_bound

MAX_NAMED = 3
COUNTED_FROM = (0, 5, 15)
"""First SGLang line that counts verify calls."""


def counted_launches(measured: Measured) -> list[LaunchData]:
    """Return the launches whose counters give an accept length."""
    return [data for data in measured.counted if has_counts(data)]


def comparable(measured: Measured) -> Measured:
    """Return what was measured of those launches alone whose gauges and counters both give τ."""
    both = [data for data in counted_launches(measured) if data.shows("spec.accept_length")]
    return Measured(measured.window, both, None)


def contradiction(measured: Measured) -> str:
    """Return why the counts in use cannot be: more drafts accepted than proposed. Empty = they can."""
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and measured.requests:
        sums = measured.requests
        too_many = sums.proposed is not None and sums.accepted > sums.proposed * (1 + 1e-9)
        return f"requests report {sums.accepted:.0f} of {sums.proposed:.0f} drafts" if too_many else ""
    if measured.evidence not in (Evidence.COUNTERS, Evidence.DRAFT_COUNTERS):
        return ""
    found = filter(None, map(_too_many, counted_launches(measured)))
    return next((f"the counts contradict each other: {reason}" for reason in found), "")


def _too_many(data: LaunchData) -> str:
    found, draft_tokens = totals(data), constant_draft_tokens(data)
    calls, accepted = found.cycles, found.accepted or 0.0
    length = 1 + accepted / calls
    if counts_drafts(data):
        too_many = found.proposed is not None and accepted > found.proposed * (1 + 1e-9)
        return (
            f"launch {data.launch.id} has {accepted:.0f} of {found.proposed:.0f} drafts" if too_many else ""
        )
    if draft_tokens is not None and accepted > calls * (draft_tokens - 1) * (1 + 1e-9):
        proposed = calls * (draft_tokens - 1)
        return (
            f"launch {data.launch.id} would have accepted {accepted:.0f} of {proposed:.0f} proposed drafts "
            f"(τ = {length:.2f} with D = {draft_tokens:.0f})"
        )
    seen = data.extremes("spec.num_draft_tokens")
    if draft_tokens is None and seen and not data.launch.adaptive and length > seen[1] + 1:
        return f"launch {data.launch.id} would have τ = {length:.2f} with D ≤ {seen[1]:.0f}"
    return ""


def with_doubts(measured: Measured, number: Number) -> Number:
    """Return τ or draft acceptance: undetermined if its counts cannot be, else with its error bound."""
    reason = contradiction(measured)
    if reason:
        nothing = {"value": None, "low": None, "high": None, "interval_method": ""}
        state = NumberState.UNDETERMINED
        return number.model_copy(update={**nothing, "state": state, "note": reason})
    notes = [number.note]
    if number.value is None and number.unit == "1" and not number.note:
        notes.append(_why_no_share(measured))
    if number.value is not None:
        notes.append(disturbance_note(measured))
    return number.model_copy(update={"note": "; ".join(filter(None, notes))})


def disturbance_note(measured: Measured) -> str:
    """Return by how much aborted and retracted requests may distort derived counts; empty = not at all."""
    if measured.evidence is not Evidence.COUNTERS:
        return ""
    aborted, retracted = (
        sum(data.disturbances.get(name, 0.0) for data in measured.counted if not counts_drafts(data))
        for name in ("requests.aborted", "requests.retracted")
    )
    parts = []
    if aborted > 0:
        parts.append(
            f"up to {aborted:.0f} too low: {aborted:.0f} aborted requests, each finished perhaps before "
            "its first token"
        )
    if retracted > 0:
        parts.append(
            f"up to {retracted:.0f} too high: {retracted:.0f} retractions, after each of which prefill makes "
            "a token without a verify call"
        )
    if not parts:
        return ""
    bound = max(aborted, retracted) / measured.counters.calls
    return f"accepted drafts are {' and '.join(parts)} (τ is off by at most {bound:.2g})"


def _why_no_share(measured: Measured) -> str:
    printed = [data for data in measured.launches if data.shows("spec.accept_length")]
    if not printed:
        return "no accept length in this range"
    for data in printed:
        draft_tokens = constant_draft_tokens(data)
        if draft_tokens is None and data.launch.adaptive:
            return "D changes while the engine runs (adaptive), so what was proposed is not known"
        if draft_tokens is None and data.extremes("spec.num_draft_tokens"):
            return f"D changed inside launch {data.launch.id}, so what was proposed is not known"
        if draft_tokens is None:
            return "D is not known: neither a gauge nor the launch says it"
        if draft_tokens <= 1:
            return f"nothing is proposed with D = {draft_tokens:.0f}"
    return "accept length and D contradict each other"


def left_out(measured: Measured) -> str:
    """Return a sentence that names the launches which the evidence in use does not cover, and why."""
    counting = (Evidence.DRAFT_COUNTERS, Evidence.COUNTERS)
    if measured.evidence not in (*counting, Evidence.GAUGES) or len(measured.launches) < 2:
        return ""
    if measured.evidence in counting:
        counted = {data.launch.id for data in counted_launches(measured)}
        missing = [data for data in measured.launches if data.launch.id not in counted]
    else:
        missing = [data for data in measured.launches if not data.shows("spec.accept_length")]
    return _sentence(missing, measured.evidence)


def choice_notes(measured: Measured) -> list[str]:
    """Return what a reader must know about the series that were used, as sentences."""
    notes = dict.fromkeys(data.note for data in measured.launches if data.note)
    return [f"{note[0].upper()}{note[1:]}." for note in notes]


def _sentence(missing: Sequence[LaunchData], evidence: Evidence) -> str:
    if not missing:
        return ""
    named = [f"launch {data.launch.id} ({_why(data, evidence)})" for data in missing[:MAX_NAMED]]
    more = len(missing) - len(named)
    return f"Left out: {', '.join(named)}{f' and {more} more' if more else ''}."


def _why(data: LaunchData, evidence: Evidence) -> str:
    launch = data.launch
    if data.is_plain:
        return "it decodes without speculation"
    if evidence is Evidence.GAUGES:
        return "it printed no accept length while active"
    if launch.engine == "vllm":
        return "it counted no drafts"
    release = release_of(launch.engine_version)
    if release and release < COUNTED_FROM and not is_lower_bound(launch.version_source):
        return f"SGLang {launch.engine_version} counts no verify calls"
    return "no verify calls were counted: no request finished, or its version counts none"
