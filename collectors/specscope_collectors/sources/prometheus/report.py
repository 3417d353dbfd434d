"""How reading the history of a server went, as `SourceHealth`."""

from __future__ import annotations

from specscope_collectors.observations import HealthState, SourceHealth
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.api import Api, ApiProblem
from specscope_collectors.sources.prometheus.replay import Tally

_MAX_DETAIL = 500


def health(api: Api, tally: Tally, now_ms: int, *, is_done: bool) -> SourceHealth:
    """Return how it goes; what was left out is said with the reason."""
    details, remedy = _details(tally)
    answer = api.last
    return SourceHealth(
        source=SOURCE,
        time_ms=now_ms,
        state=HealthState.PARTIAL if details else HealthState.OK,
        url=api.url,
        duration_seconds=answer.duration_seconds if answer else 0.0,
        http_status=answer.status if answer else None,
        body_bytes=answer.body_bytes if answer else None,
        refused=tally.refused,
        detail="; ".join(details)[:_MAX_DETAIL],
        remedy=remedy,
        missing={} if is_done else {"what is newer": "the past is still being read"},
    )


def _details(tally: Tally) -> tuple[list[str], str]:
    details, remedy = [], ""
    if tally.refused:
        details.append(f"{tally.refused} values refused: " + "; ".join(tally.refusals))
    if tally.doubtful:
        details.append(f"{tally.doubtful} scrapes of several processes by turns, of which nothing is taken")
        remedy = "let Prometheus scrape each engine at its own address, not through a load balancer"
    if tally.others:
        details.append(f"{tally.others} scrapes of further targets or replicas under this name, left out")
        remedy = "if these are other servers, name the label that tells them apart (server_label)"
    return details, remedy


def problem_health(api: Api, problem: ApiProblem, now_ms: int) -> SourceHealth:
    """Return what keeps the API from answering."""
    answer = problem.answer
    return SourceHealth(
        source=SOURCE,
        time_ms=now_ms,
        state=problem.state,
        url=api.url,
        duration_seconds=answer.duration_seconds if answer else 0.0,
        http_status=answer.status if answer else None,
        detail=problem.detail[:_MAX_DETAIL],
        remedy=problem.remedy[:_MAX_DETAIL],
    )
