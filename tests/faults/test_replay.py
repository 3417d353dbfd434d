"""Bodies that arrive again, late, twice at once and mixed: the sum stored is the sum sent."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine, text
from tests.server.client import Web
from tests.server.ingest.bodies import frames, make_batch, push
from tests.server.seed import NOW

from specscope_collectors.observations import Batch, Event
from specscope_server.app import create_app
from specscope_server.settings import Settings

COLLECTORS, BODIES, IN_EACH = ("watch:a#1", "watch:b#2", "watch:c#3"), 12, 5


def body(collector: str, number: int) -> bytes:
    """Return the collector's body of this number, from 0; its batches hold one event each."""
    first = number * IN_EACH + 1
    return frames([_batch(collector, sequence) for sequence in range(first, first + IN_EACH)])


def _batch(collector: str, sequence: int) -> Batch:
    return make_batch(
        sequence, Event(kind="note", time_ms=NOW, message=f"{collector} {sequence}"), collector=collector
    )


def test_replayed_and_interleaved_bodies(store_engine: Engine) -> None:
    chance = random.Random(5)
    web = Web(create_app(Settings(), engine=store_engine, clock=lambda: NOW))
    sent, applied = dict.fromkeys(COLLECTORS, 0), 0
    with ThreadPoolExecutor(3) as pool:
        while min(sent.values()) < BODIES:
            ready = [name for name in COLLECTORS if sent[name] < BODIES]
            collector = chance.choice(ready)
            fresh = body(collector, sent[collector])
            late = [body(name, chance.randrange(done)) for name, done in sent.items() if done]
            copies = [fresh] * chance.randrange(1, 4) + chance.sample(late, chance.randrange(len(late) + 1))
            chance.shuffle(copies)
            answers = list(pool.map(lambda content: push(web, content, content_encoding="zstd"), copies))
            assert any(answer.status_code == 200 for answer in answers)
            answers.append(push(web, fresh, content_encoding="zstd"))
            while answers[-1].status_code != 200:  # all were turned away: again
                answers.append(push(web, fresh, content_encoding="zstd"))
            applied += sum(answer.json()["applied"] for answer in answers if answer.status_code == 200)
            sent[collector] += 1
    count = BODIES * IN_EACH
    assert applied == 3 * count, "each batch is applied once, however often it came"
    expected = {
        "SELECT sum(value) FROM sample": 3 * sum(range(1, count + 1)),
        "SELECT count(*) FROM sample": 3 * count,
        "SELECT count(*) FROM event": 3 * count,
        "SELECT sum(sum) FROM sample_1h": 3 * sum(range(1, count + 1)),
        "SELECT min(sequence) FROM collector": count,
    }
    with store_engine.connect() as connection:
        assert {query: connection.execute(text(query)).scalar_one() for query in expected} == expected
