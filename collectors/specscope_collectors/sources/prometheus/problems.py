"""Why the API did not answer, in words and with a remedy."""

from __future__ import annotations

import re

from specscope_collectors.fetch import Answer
from specscope_collectors.observations import HealthState
from specscope_collectors.sources.prometheus.answers import BadAnswerError, reply

_TOO_MUCH_STATUS = frozenset({413, 414, 431})
_MAY_BE_TOO_MUCH = frozenset({400, 422, 500, 503})
_TOO_MUCH_WORDS = re.compile(
    r"exceed|too many|too large|too long|limit|maximum|max[-_]|timed out|timeout|load too", re.IGNORECASE
)
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_PATHS = (
    "give the URL in front of /api/v1: for Mimir and Cortex it ends with /prometheus, for a VictoriaMetrics "
    "cluster with /select/0/prometheus, behind Grafana it is not reachable without a token of its own"
)
_KEY = (
    "name the variable or file that holds the token (token_env, token_file) or the password "
    "(user, password_env, password_file); some want a tenant in headers, such as X-Scope-OrgID"
)
_TLS = "name its certificate authority (ca_file), or write http:// if the port speaks plain HTTP"
_REACH = "check that it runs, the host name and the port (Prometheus' default is 9090), and firewalls"
_SLOW = "it is asked for less at a time; raise timeout, or lower its load"


class ApiProblem(Exception):
    """No usable answer. ``too_much``: ask for less. ``is_passing``: ask again later."""

    def __init__(
        self,
        state: HealthState,
        detail: str,
        remedy: str = "",
        *,
        answer: Answer | None = None,
        too_much: bool = False,
        is_passing: bool = False,
    ) -> None:
        super().__init__(detail)
        self.state, self.detail, self.remedy = state, detail, remedy
        self.answer, self.too_much, self.is_passing = answer, too_much, is_passing


def problem_of(answer: Answer, shown: str) -> ApiProblem:
    """Return what is wrong with an answer that is not OK; ``shown`` is the URL without its query."""
    state, status = answer.state, answer.status
    if state is HealthState.TOO_LARGE:
        return ApiProblem(state, f"{shown}: {answer.detail}", _SLOW, answer=answer, too_much=True)
    if state is HealthState.TIMEOUT:
        detail = f"{shown} gave no complete answer in time"
        return ApiProblem(state, detail, _SLOW, answer=answer, too_much=True, is_passing=True)
    if state is HealthState.UNREACHABLE:
        detail = answer.detail.replace(answer.url, shown)
        return ApiProblem(state, detail, _REACH, answer=answer, is_passing=True)
    if state is HealthState.TLS_ERROR:
        return ApiProblem(state, answer.detail.replace(answer.url, shown), _TLS, answer=answer)
    if status is None or state is HealthState.INVALID:
        detail = answer.detail.replace(answer.url, shown)
        return ApiProblem(state, detail, answer.remedy, answer=answer, is_passing=True)
    return _refused(answer, shown, status)


def _refused(answer: Answer, shown: str, status: int) -> ApiProblem:
    said = _said(answer)
    words = f": {said}" if said else ""
    detail = f"{shown} answered HTTP {status}{words}"
    if status in (401, 403):
        return ApiProblem(HealthState.UNAUTHORIZED, detail, _KEY, answer=answer)
    if status in (404, 405) or 300 <= status < 400:
        detail += "; there is no Prometheus API"
        return ApiProblem(HealthState.NOT_THIS_ENGINE, detail, _PATHS, answer=answer)
    too_much = status in _TOO_MUCH_STATUS or (
        status in _MAY_BE_TOO_MUCH and _TOO_MUCH_WORDS.search(said) is not None
    )
    remedy = _SLOW if too_much else "it is asked again" if status in _BUSY else "look into its log"
    return ApiProblem(
        HealthState.HTTP_ERROR,
        detail,
        remedy,
        answer=answer,
        too_much=too_much,
        is_passing=status in _BUSY,
    )


def _said(answer: Answer) -> str:
    try:
        return reply(answer.body).error
    except BadAnswerError:
        text = answer.body[:200].decode(errors="replace")
        return " ".join(text.split()) if text.isprintable() and "<" not in text else ""


def not_an_api(answer: Answer, shown: str, reason: str) -> ApiProblem:
    """Return the problem of an answer that is something else than the API's JSON."""
    detail = f"{shown} is no answer of a Prometheus API: {reason}"
    return ApiProblem(HealthState.NOT_THIS_ENGINE, detail, _PATHS, answer=answer)
