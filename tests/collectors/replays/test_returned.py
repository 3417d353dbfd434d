"""States that SGLang itself returns: trusted where they add up, and refused with the reason elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from specscope_collectors.replays.engine import Engine
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.returned import through_engine, version_of, why_not
from specscope_collectors.replays.samples import Sample, Training
from specscope_collectors.replays.spooled import through_probe
from specscope_probe.states.replaying import REQUEST

HIDDEN, TOKENS = 4, 12
STATES = np.arange(TOKENS * 2 * HIDDEN, dtype=np.float32).reshape(TOKENS, 2 * HIDDEN)
GOOD = {"version": "0.5.23", "enable_return_hidden_states": True}
TRAINING = Training(
    (Sample("a", np.arange(TOKENS), np.zeros((2, TOKENS, HIDDEN), np.float32)),), HIDDEN, 2, False, False,
    (None, None), None,
)  # fmt: skip

Far = Callable[..., Engine]


@pytest.fixture
def far() -> Far:
    """An engine that answers what it is told to."""

    def make(info: dict[str, Any], answer: Any, asked: list[str] | None = None) -> Engine:
        asked = [] if asked is None else asked

        def handle(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("server_info"):
                return httpx.Response(200, json=info)
            body = json.loads(request.content)
            asked.append(body["rid"])
            assert "text" not in body
            assert body["sampling_params"]["max_new_tokens"] == 1
            return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

        return Engine("http://far", transport=httpx.MockTransport(handle))

    return make


def answered(states: list[Any], cached: int = 0) -> dict[str, Any]:
    """Return an answer with states."""
    return {"text": "secret", "meta_info": {"hidden_states": states, "cached_tokens": cached}}


def test_rows_of_chunks_are_joined_and_those_of_answers_left_out(far: Far) -> None:
    states = [STATES[:8].tolist(), STATES[8:].tolist(), [0.5] * 2 * HIDDEN]
    found = through_engine(far(GOOD, answered(states)), TRAINING, "ab" * 8)
    np.testing.assert_array_equal(found.served[0].states, STATES)
    np.testing.assert_array_equal(found.served[0].positions, np.arange(TOKENS))


def test_no_probe_keeps_rows_that_come_back_in_answers(far: Far, tmp_path: Path) -> None:
    direct: list[str] = []
    through_engine(far(GOOD, answered([STATES.tolist()]), direct), TRAINING, "ab" * 8)
    assert [REQUEST.fullmatch(each) for each in direct] == [None]
    spooled: list[str] = []
    through_probe(far(GOOD, {}, spooled), TRAINING, "ab" * 8, tmp_path, lambda seconds: None)
    found = REQUEST.fullmatch(spooled[0])
    assert found is not None
    assert found.groups() == ("ab" * 8, "0")
    assert not any(REQUEST.fullmatch(each) for each in spooled[1:]), "nudges are nobody's rows"


def test_a_cached_prefix_has_no_rows(far: Far) -> None:
    found = through_engine(far(GOOD, answered([STATES[5:].tolist()], cached=5)), TRAINING, "ab" * 8)
    assert found.served[0].positions.tolist() == list(range(5, TOKENS))


@pytest.mark.parametrize(
    ("states", "cached"),
    [([STATES[:7].tolist()], 0), ([STATES.tolist()], 5), ([STATES[:7].tolist(), STATES[:8].tolist()], 0)],
    ids=["too few", "too many", "of another chunk"],
)
def test_rows_that_do_not_add_up_are_refused(far: Far, states: list[Any], cached: int) -> None:
    with pytest.raises(ReplayError, match="not trusted; use the probe"):
        through_engine(far(GOOD, answered(states, cached)), TRAINING, "ab" * 8)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"version": "0.5.15", "enable_return_hidden_states": True}, "can return rows of other requests"),
        ({"version": "0.5.8.post1", "enable_return_hidden_states": True}, "trusted from 0.5.20 on"),
        ({"version": "0.5.23"}, "without --enable-return-hidden-states"),
        ({}, "does not say its version"),
        ({"version": "main"}, "does not say its version"),
    ],
    ids=["0.5.15", "0.5.8", "no flag", "no version", "no number"],
)
def test_engines_that_cannot_be_trusted_are_refused(far: Far, info: dict[str, Any], words: str) -> None:
    with pytest.raises(ReplayError, match=words):
        through_engine(far(info, answered([])), TRAINING, "ab" * 8)


def test_versions_are_read_as_they_are_written() -> None:
    assert version_of({"version": "0.5.23.dev1+g12ab"}) == (0, 5, 23)
    assert version_of({"version": "0.6"}) == (0, 6)
    assert why_not({"version": "0.6", "enable_return_hidden_states": True}) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(401), "SPECSCOPE_REPLAY_API_KEY"),
        (httpx.Response(400, text="too long\x1b[31m"), r"refused a sample of 12 tokens: 400 too long \[31m"),
        (httpx.Response(200, text="[1]"), "something else than an object"),
        (httpx.Response(200, text="<html>"), "something else than an object"),
    ],
    ids=["key", "refused", "list", "page"],
)
def test_what_is_no_answer_is_named(far: Far, answer: httpx.Response, words: str) -> None:
    with pytest.raises(ReplayError, match=words):
        through_engine(far(GOOD, answer), TRAINING, "ab" * 8)


def test_a_probe_that_leaves_nothing_is_no_data_with_the_remedy(far: Far, tmp_path: Path) -> None:
    waited: list[float] = []
    found = through_probe(far(GOOD, {}), TRAINING, "ab" * 8, tmp_path / "none", waited.append)
    assert not found.served
    assert "SPECSCOPE_PROBE_REPLAY=1" in found.missing
    assert 10 < sum(waited) < 60


def test_a_hostile_file_in_the_spool_is_refused(far: Far, tmp_path: Path) -> None:
    np.savez(tmp_path / f"specscope-replay-{'ab' * 8}-00000-0000000.npz", states=np.array([object()]))
    with pytest.raises(ReplayError, match="not as the probe writes it"):
        through_probe(far(GOOD, {}), TRAINING, "ab" * 8, tmp_path, lambda seconds: None)
    assert not list(tmp_path.iterdir())
