"""The few questions that are asked of a Prometheus-compatible API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import httpx

from specscope_collectors.config import CollectorOptions
from specscope_collectors.fetch import Answer, fetch
from specscope_collectors.sources.prometheus.answers import (
    BadAnswerError,
    RawSeries,
    Reply,
    matrix,
    reply,
    scalar,
    strings,
)
from specscope_collectors.sources.prometheus.durations import promql_duration
from specscope_collectors.sources.prometheus.problems import ApiProblem, not_an_api, problem_of

REFUSAL_BYTES = 16_384
MAX_POINTS = 10_000
"""Points per series of one range query; Prometheus refuses more than 11 000."""
_WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
"""Thanos and VictoriaMetrics else leave out what a node of theirs does not answer; others ignore these."""


class Api:
    """One API. All methods raise `ApiProblem`; ``last`` is the last answer, for reports of health."""

    def __init__(
        self,
        url: str,
        client: httpx.AsyncClient,
        options: CollectorOptions,
        headers: Mapping[str, str],
        *,
        auth: str | None = None,
    ) -> None:
        self.url = url
        self.last: Answer | None = None
        self._client = client
        self._options = options
        self._headers = {"User-Agent": "specscope-collector", "Accept-Encoding": "gzip", **headers}
        if auth:
            self._headers["Authorization"] = auth

    async def now_ms(self) -> int:
        """Return the API's own time: ours may differ, and its newest samples carry its time."""
        answer, said = await self._ask("/api/v1/query", [("query", "time()")])
        try:
            return round(scalar(said.data) * 1000)
        except (BadAnswerError, ValueError, OverflowError) as error:
            raise not_an_api(answer, answer.url.partition("?")[0], str(error)) from None

    async def raw(self, selector: str, from_ms: int, to_ms: int) -> list[RawSeries]:
        """Return the stored samples of (from, to], with the times at which they were scraped."""
        query = f"{selector}[{promql_duration(to_ms - from_ms)}]"
        return await self._matrix("/api/v1/query", [("query", query), ("time", _seconds(to_ms))])

    async def grid(self, selector: str, from_ms: int, to_ms: int, step_ms: int) -> list[RawSeries]:
        """Return the newest value at each of from, from + step, … to."""
        asked = [("query", selector), ("start", _seconds(from_ms)), ("end", _seconds(to_ms))]
        return await self._matrix("/api/v1/query_range", [*asked, ("step", promql_duration(step_ms))])

    async def label_values(self, label: str, matchers: Sequence[str], from_ms: int, to_ms: int) -> list[str]:
        """Return the values of a label on the series that ``matchers`` select within the time."""
        asked = [("match[]", matcher) for matcher in matchers]
        asked += [("start", _seconds(from_ms)), ("end", _seconds(to_ms))]
        answer, said = await self._ask(f"/api/v1/label/{label}/values", asked)
        try:
            return strings(said.data)
        except BadAnswerError as error:
            raise not_an_api(answer, answer.url.partition("?")[0], str(error)) from None

    async def _matrix(self, path: str, asked: list[tuple[str, str]]) -> list[RawSeries]:
        answer, said = await self._ask(path, [*asked, *_WHOLE_ANSWERS.items()])
        try:
            return matrix(said.data)
        except BadAnswerError as error:
            raise not_an_api(answer, answer.url.partition("?")[0], str(error)) from None

    async def _ask(self, path: str, asked: list[tuple[str, str]]) -> tuple[Answer, Reply]:
        shown = self.url + path
        answer = await fetch(
            self._client,
            f"{shown}?{urlencode(asked)}",
            options=self._options,
            headers=self._headers,
            refusal_bytes=REFUSAL_BYTES,
        )
        self.last = answer
        if not answer.ok:
            raise problem_of(answer, shown)
        try:
            said = reply(answer.body)
        except BadAnswerError as error:
            raise not_an_api(answer, shown, str(error)) from None
        if said.error:
            raise not_an_api(answer, shown, said.error)
        return answer, said


def _seconds(time_ms: int) -> str:
    return f"{time_ms // 1_000}.{time_ms % 1_000:03d}"


__all__ = ["MAX_POINTS", "Api", "ApiProblem"]
