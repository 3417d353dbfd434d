"""A server that cannot be read: one page about it, and nothing else of it."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select
from tests.server.alerts.standin import GPU1, GPU2, World, a_reading, a_rule

from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.schema import Origin, StoredRule
from specscope_server.models import AlertState


@pytest.mark.parametrize("silent", ["scrape-down", "scrape-stale"])
def test_one_server_that_cannot_be_read_mutes_the_rest_of_it_and_nothing_else(
    sqlite_engine: Engine, silent: str
) -> None:
    own = a_rule("own", category="other")
    rules = [StoredRule(rule=rule, version=1, origin=Origin.PACK, enabled=True) for rule in pack().values()]
    shortened = [each.model_copy(update={"rule": each.rule.model_copy(update={"for_": 0})}) for each in rules]
    world = World(sqlite_engine, [*shortened, own])
    world.tick(a_reading(silent))
    others = [each.rule.name for each in world.rules if each.rule.name != silent]
    world.tick(*(a_reading(name, labels=at) for at in (GPU1, GPU2) for name in others), a_reading(silent))
    query = select(AlertState.rule, AlertState.labels, AlertState.muted_by)
    with sqlite_engine.connect() as connection:
        found = {(row.rule, row.labels): row.muted_by for row in connection.execute(query)}
    here, there = ('{"server":"gpu1"}', '{"server":"gpu2"}')
    assert found.pop((silent, here)) == ""
    assert {rule for rule, labels in found if labels == here} == set(others)
    for (rule, labels), muted_by in found.items():
        assert (muted_by == f"inhibited:{silent}") == (labels == here), (rule, labels)
    assert there in {labels for _, labels in found}
