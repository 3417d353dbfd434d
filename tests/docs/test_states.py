"""Every state that a user can meet is explained in the guides."""

from __future__ import annotations

import pkgutil

import pytest
from tests.docs.pages import headings, read

import specscope_collectors.sources
from specscope_collectors.observations import HealthState
from specscope_server.acceptance.schemas import Evidence, NumberState


@pytest.mark.parametrize("state", HealthState)
def test_a_state_of_a_source_has_its_heading(state: HealthState) -> None:
    assert state.value in headings(read("docs/guide/troubleshooting.md"))


@pytest.mark.parametrize("state", NumberState)
def test_a_state_of_a_number_has_its_row(state: NumberState) -> None:
    assert f"| **{state.value.replace('_', ' ')}** |" in read("docs/guide/reading-the-numbers.md")


@pytest.mark.parametrize("evidence", [each for each in Evidence if each is not Evidence.NONE])
def test_evidence_has_its_row(evidence: Evidence) -> None:
    assert f"| **{evidence.value.replace('_', ' ')}** |" in read("docs/guide/reading-the-numbers.md")


def test_every_source_has_its_row() -> None:
    names = [module.name for module in pkgutil.iter_modules(specscope_collectors.sources.__path__)]
    assert names
    assert [name for name in names if f"| `{name}` |" not in read("docs/guide/sources.md")] == []
