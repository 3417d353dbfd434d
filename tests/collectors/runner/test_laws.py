"""Whatever happens, growth is counted once: no token twice, none lost that a good scrape has seen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.runner.engine import Bench, Engine, bench

from specscope_collectors.alternation import FLAPPING_SECONDS, HELD_SCRAPES

TOKENS = "tokens.generated"
STEPS = st.lists(
    st.sampled_from(
        [
            "serve",
            "scrape",
            "scrape",
            "lose a scrape",
            "restart",
            "restart unseen",
            "kill",
            "store down",
            "lost answer",
        ]
    ),
    max_size=14,
)


class Truth:
    """What must have been stored: per process, the tokens between its first and last good scrape."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.expected = 0.0
        self._counted: float | None = None
        self.restarts = 0

    def scraped(self) -> None:
        """Take note of a good scrape: the first of all is the baseline."""
        if self._counted is not None:
            self.expected += self._engine.tokens - self._counted
        self._counted = self._engine.tokens

    def restarted(self) -> None:
        if self._counted is not None:
            self._counted = 0.0
            self.restarts += 1


def play(b: Bench, truth: Truth, step: str) -> None:
    if step == "serve":
        b.engine.serve(tokens=7, verify_calls=3)
    elif step == "scrape":
        b.scrape()
        truth.scraped()
    elif step == "lose a scrape":
        b.engine.break_down()
        b.scrape()
        b.engine.recover()
    elif step == "restart":  # found down once, and it serves a lot before the next good scrape
        b.engine.break_down()
        b.scrape()
        b.engine.recover()
        b.engine.restart(tokens=5000, verify_calls=2000)
        truth.restarted()
        b.scrape()
        truth.scraped()
    elif step == "restart unseen":  # told by counters that fall, so there must be some
        b.engine.serve(tokens=7, verify_calls=3)
        b.scrape()
        truth.scraped()
        b.engine.restart()
        truth.restarted()
        b.scrape(1 + HELD_SCRAPES)
        truth.scraped()
        b.scrape(seconds=FLAPPING_SECONDS)  # another one so soon would be several engines taking turns
    elif step == "kill":
        b.kill()
    elif step == "store down":
        b.sink.is_down = True
        b.scrape()
        b.sink.is_down = False
    else:
        b.sink.loses_the_answer = True
        b.scrape()
        b.sink.loses_the_answer = False
        truth.scraped()


@settings(deadline=None, max_examples=25)
@given(STEPS)
def test_every_token_is_counted_once(steps: list[str]) -> None:
    with bench() as b:
        truth = Truth(b.engine)
        for step in steps:
            play(b, truth, step)
        b.scrape()
        truth.scraped()
        assert b.sink.total(TOKENS) == truth.expected
        assert len(b.sink.launches()) == len({launch.key for launch in b.sink.launches()})
        assert len(b.sink.launches()) == 1 + truth.restarts
        sequences = [batch.sequence for batch in b.sink.batches]
        assert sequences == list(range(1, len(sequences) + 1))
