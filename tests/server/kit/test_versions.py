"""How a version is worded says how well it is known."""

from __future__ import annotations

import pytest

from specscope_collectors.sources.sglang_log import versions
from specscope_server.kit.versions import LOG_LINES, is_lower_bound, version_text


@pytest.mark.parametrize(
    ("version", "source", "text"),
    [
        ("0.5.8", "server_info", "0.5.8"),
        ("0.5.8", "metric_names", "0.5.8 or later (from the metric names)"),
        ("0.5.9–0.5.22", "log_lines", "0.5.9–0.5.22 (from the lines of its log)"),
        (None, None, None),
    ],
)
def test_a_version_says_where_it_is_from(version: str | None, source: str | None, text: str | None) -> None:
    assert version_text(version, source) == text


def test_a_range_is_no_lower_bound_and_the_collector_names_it_the_same() -> None:
    assert not is_lower_bound(LOG_LINES)
    assert versions.SOURCE == LOG_LINES
