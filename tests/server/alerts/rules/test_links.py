"""Where a rule may lead: paths of the dashboard, and addresses of runbooks, nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from specscope_server.alerts.rules.problems import RuleError, read_rule

RULE: dict[str, Any] = {
    "name": "low", "title": "Low",
    "condition": {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.5},
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("page", "javascript:alert(1)"), ("page", "//evil.example/x"), ("page", "/\\evil.example"),
        ("page", "acceptance"), ("page", "/a\nb"), ("runbook", "javascript:alert(1)"),
        ("runbook", "wiki.example.org"), ("runbook", "https://a\u202e"),
    ],
)  # fmt: skip
def test_links_that_lead_elsewhere_are_refused(field: str, value: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_rule({**RULE, field: value})
    assert [problem.field for problem in caught.value.problems] == [field]


def test_links_that_are_meant() -> None:
    rule = read_rule({**RULE, "page": "/time?by=rank", "runbook": "https://wiki.example.org/low"})
    assert (rule.page, rule.runbook) == ("/time?by=rank", "https://wiki.example.org/low")
