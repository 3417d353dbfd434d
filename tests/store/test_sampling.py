"""One row in n: about as many as asked for, evenly over ids, and blind to who alternates."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, literal, literal_column, select

from specscope_server.store.sampling import CIRCLE, STEP, one_in

FIRST = select(literal(1).label("id")).cte("ids", recursive=True)
IDS = FIRST.union_all(select(FIRST.c.id + 1).where(FIRST.c.id < 3_000))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 50])
def test_each_stretch_and_each_residue_gives_its_share(store_engine: Engine, n: int) -> None:
    with store_engine.connect() as connection:
        taken = set(connection.execute(select(IDS.c.id).where(one_in(IDS.c.id, n))).scalars())
    assert len(taken) == pytest.approx(3_000 / n, abs=3)
    for start in range(0, 3_000, 600):
        assert len([one for one in taken if start < one <= start + 600]) == pytest.approx(600 / n, abs=4)
    for period in (2, 3, 5, n):
        for residue in range(min(period, 5)):
            mine = len([one for one in taken if one % period == residue])
            assert mine == pytest.approx(3_000 / n / period, abs=6), (period, residue)


def test_the_largest_ids_do_not_overflow(store_engine: Engine) -> None:
    assert CIRCLE * STEP < 2**63
    with store_engine.connect() as connection:
        assert connection.execute(select(one_in(literal_column(str(2**63 - 1)), 1))).scalar_one()
