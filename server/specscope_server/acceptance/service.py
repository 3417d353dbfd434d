"""Compose the acceptance summary of a server."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.acceptance import numbers
from specscope_server.acceptance.context import Context
from specscope_server.acceptance.counts import constant_draft_tokens
from specscope_server.acceptance.doubts import (
    choice_notes,
    contradiction,
    disturbance_note,
    left_out,
    with_doubts,
)
from specscope_server.acceptance.engine_rates import UNDETERMINED, Formula, strict_equivalent
from specscope_server.acceptance.gather import LaunchData, gather
from specscope_server.acceptance.measure import Measured, inferred_draft_tokens
from specscope_server.acceptance.raw_names import who_counts_drafts
from specscope_server.acceptance.requests import histograms_agree, request_sums
from specscope_server.acceptance.schemas import (
    AcceptanceSummary,
    AcceptanceTrend,
    Counts,
    EngineRate,
    Evidence,
    LaunchBrief,
    NumberState,
    Verdict,
)
from specscope_server.acceptance.statistics import time_weighted
from specscope_server.acceptance.trend import trend_of_window
from specscope_server.acceptance.verdict import checks, judge
from specscope_server.acceptance.windows import fine_window, most_buckets
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.models import Launch
from specscope_server.store.coverage_reader import read_coverage
from specscope_server.store.lookup import choose_launches, has_successor, server_by_name

EVIDENCE_NOTES = {
    Evidence.DRAFT_COUNTERS: "Growth of cycles, proposed and accepted drafts, counted as they happen by "
    "{who}: exact, of every request.",
    Evidence.REQUEST_HISTOGRAMS: "Counts that each finished request reported: exact, with requests as "
    "clusters.",
    Evidence.COUNTERS: "Growth of tokens, requests and verify calls over finished requests: exact "
    "counts; accepted drafts are derived from them.",
    Evidence.GAUGES: "The engine's own window means, as scraped or logged: what fell between two windows "
    "is not seen. This engine version counts no verify calls, or none finished in this range.",
    Evidence.NONE: "Nothing in this range says how many drafts were accepted.",
}
DERIVED = (
    "Accepted drafts are derived: tokens − requests − verify calls (each cycle gives one bonus "
    "token, and prefill makes the first token of each request). Drafts accepted past a request's stop are "
    "never output, so this can be lower than Σ accepted: 40 tokens from 18 calls with 24 accepted drafts "
    "give 21. Requests still running are not in it yet."
)
COUNTED = "Accepted and proposed drafts are counted by {who}, cycle by cycle; nothing is derived."
REPORTED = "Accepted and proposed drafts are sums of what each finished request reported."


def summary(
    session: Session,
    state: AppState,
    server: str,
    launch: str | None,
    span: TimeRange,
    rank: int | None = None,
) -> AcceptanceSummary:
    """Return the summary over ``span`` (its step does not matter).

    Raises `NotFound` for an unknown server or launch.
    """
    row = server_by_name(session, server)
    launches = choose_launches(session, row.id, launch, span.from_ms, span.to_ms)
    most = most_buckets(launches)
    window = fine_window(span.from_ms, span.to_ms, state.scrape_interval_ms, most)
    ids = [item.id for item in launches]
    # Finished requests belong to the server as a whole, not to one of its ranks.
    requests = request_sums(session, row.id, ids, window) if rank is None else None
    measured = Measured(window, gather(session, launches, window, rank), requests)
    is_over = bool(launches) and has_successor(session, launches[-1])
    covered = read_coverage(session, launches[-1], state.stale_after_ms) if launches else None
    context = Context(measured, span.now_ms, state.stale_after_ms, rank, is_over, covered)
    found = _summary(context, server, launches[-1] if launches else None, window)
    histograms = histograms_agree(session, row.id, ids, window) if requests else None
    found.is_demo = any(item.is_demo for item in launches)
    found.checks = checks(context, found.accept_length, found.engine_reported_rate, histograms)
    found.verdict = judge(context, found)
    return found


def trend(
    session: Session,
    state: AppState,
    server: str,
    launch: str | None,
    span: TimeRange,
    rank: int | None = None,
) -> AcceptanceTrend:
    """Return the trend over ``span``; raises `NotFound` for an unknown server or launch."""
    return trend_of_window(session, server, launch, span.window(), state.scrape_interval_ms, rank)


def _summary(context: Context, server: str, launch: Launch | None, window: Window) -> AcceptanceSummary:
    measured = context.measured
    return AcceptanceSummary.model_validate(
        {
            "server": server,
            "launch": launch_brief(launch) if launch else None,
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "is_demo": False,
            "evidence": measured.evidence,
            "evidence_note": _evidence_note(measured),
            "accept_length": with_doubts(measured, numbers.accept_length(context)),
            "draft_acceptance": with_doubts(measured, numbers.draft_acceptance(context)),
            "engine_reported_rate": engine_rate(context),
            "num_steps": numbers.depth_number(context, "spec.num_steps"),
            "num_draft_tokens": numbers.depth_number(context, "spec.num_draft_tokens"),
            "verify_calls_per_second": numbers.verify_calls_per_second(context),
            "generated_tokens_per_second": numbers.generated_tokens_per_second(context),
            "requests_running": numbers.requests_now(context, "requests.running"),
            "requests_queued": numbers.requests_now(context, "requests.queued"),
            "counts": counts(measured),
            "checks": [],
            "verdict": Verdict(state="unknown", headline="", reasons=[]),
        }
    )


def _evidence_note(measured: Measured) -> str:
    evidence = EVIDENCE_NOTES[measured.evidence].format(who=_who_counts(measured))
    notes = [evidence, left_out(measured), *choice_notes(measured)]
    return " ".join(filter(None, notes))


def _who_counts(measured: Measured) -> str:
    engines = {data.launch.engine for data in measured.counted}
    return " and ".join(sorted(who_counts_drafts(engine) for engine in engines))


def engine_rate(context: Context) -> EngineRate:
    """Return the printed rate of the newest launch that printed one, under its definition."""
    data, decision = context.measured.rate_launch, context.measured.rate_decision
    definition = "rate as the engine printed it, weighted by time, over active stretches only"
    if data is None or decision is None:
        number = context.number(None, "1", definition, ("spec.engine_accept_rate",))
        is_vllm = context.newest is not None and context.newest.launch.engine == "vllm"
        who = "vLLM prints one in its log only" if is_vllm else "SGLang prints one from the 0.5.8 line on"
        number.note = f"no rate was printed in this range ({who})"
        return EngineRate(
            number=number, formula=UNDETERMINED, includes_bonus=None, floor=None, strict_equivalent=None
        )
    value, n = time_weighted(data.gauge("spec.engine_accept_rate"), data.activity[0])
    draft_tokens = constant_draft_tokens(data) or inferred_draft_tokens(data)
    formula = decision.formula
    state = NumberState.UNDETERMINED if formula is None else None
    number = context.number(
        value, "1", definition if formula is None else f"{definition}; {formula}",
        ("spec.engine_accept_rate",),
        state=state, n=n, n_unit="buckets", note=_rate_note(context, data, decision.reason),
        as_of_ms=data.newest_ms.get("spec.engine_accept_rate"), of=[data],
    )  # fmt: skip
    with_bonus = formula is Formula.WITH_BONUS
    return EngineRate(
        number=number,
        formula=formula or UNDETERMINED,
        includes_bonus=None if formula is None else with_bonus,
        floor=1 / draft_tokens if with_bonus and draft_tokens else None,
        strict_equivalent=None if value is None else strict_equivalent(formula, value, draft_tokens),
    )


def _rate_note(context: Context, data: LaunchData, reason: str) -> str:
    """Return the reason for the definition; a launch that has printed nothing yet is not spoken for."""
    if data is context.newest:
        return reason
    return f"{reason}; printed by an earlier launch: the newest one has printed no rate in this range"


def counts(measured: Measured) -> Counts:
    """Return the raw counts of the evidence in use, beside the live decode counter."""
    counted = measured.counters
    common = {"decoded_tokens": _summed(measured, "tokens.decoded")}
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and measured.requests:
        sums = measured.requests
        return Counts(
            accepted_drafts=sums.accepted, accepted_drafts_kind="reported", proposed_drafts=sums.proposed,
            verify_calls=sums.cycles, generated_tokens=counted.tokens, finished_requests=float(sums.n),
            explanation=REPORTED, **common,
        )  # fmt: skip
    if measured.evidence is Evidence.DRAFT_COUNTERS and not contradiction(measured):
        return Counts(
            accepted_drafts=counted.accepted, accepted_drafts_kind="counted",
            proposed_drafts=counted.proposed, verify_calls=counted.calls,
            generated_tokens=counted.tokens, finished_requests=counted.requests,
            explanation=COUNTED.format(who=_who_counts(measured)), **common,
        )  # fmt: skip
    derived = counted.accepted is not None and counted.accepted >= 0 and not contradiction(measured)
    bound = disturbance_note(measured)
    return Counts(
        accepted_drafts=counted.accepted if derived else None,
        accepted_drafts_kind="derived" if derived else "",
        proposed_drafts=counted.proposed,
        # Derived counts are of the launches that made cycles, and so are the counts that they come from.
        verify_calls=counted.calls if derived else _summed(measured, "spec.verify_calls"),
        generated_tokens=counted.tokens if derived else _summed(measured, "tokens.generated"),
        finished_requests=counted.requests if derived else _summed(measured, "requests.finished"),
        explanation=" ".join(filter(None, (DERIVED, bound and f"Here, {bound}."))) if derived else "",
        **common,
    )


def launch_brief(launch: Launch) -> LaunchBrief:
    """Return a launch in one line."""
    same = ("id", "key", "reason", "engine", "engine_version", "version_source", "algorithm", "num_steps",
            "eagle_topk", "num_draft_tokens", "model", "draft_model", "is_demo")  # fmt: skip
    return LaunchBrief(
        first_seen=to_iso(launch.first_seen_ms), last_seen=to_iso(launch.last_seen_ms),
        **{name: getattr(launch, name) for name in same},
    )  # fmt: skip


def _summed(measured: Measured, metric: str) -> float | None:
    found = [data.counters[metric].total for data in measured.launches if metric in data.counters]
    return sum(found) if found else None
