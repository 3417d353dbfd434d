"""The overall state of a server."""

from __future__ import annotations

import pytest

from specscope_server.kit.health import Overall, SourceView, overall_state

NOW, LIMIT = 1_000_000, 30_000


def views(*states: str, age_ms: int = 1_000) -> list[SourceView]:
    return [SourceView(state, NOW - age_ms) for state in states]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([], Overall.UNKNOWN),
        (views("ok", "ok"), Overall.OK),
        (views("ok", "disabled"), Overall.PARTIAL),
        (views("ok", "not_offered"), Overall.OK),
        (views("partial"), Overall.PARTIAL),
        (views("timeout", "unreachable"), Overall.FAILING),
        (views("ok", age_ms=30_001), Overall.STALE),
        (views("ok", age_ms=30_000), Overall.OK),
        ([*views("ok", age_ms=300_000), *views("ok")], Overall.OK),
    ],
)
def test_overall_state(sources: list[SourceView], expected: Overall) -> None:
    assert overall_state(sources, NOW, LIMIT) is expected
