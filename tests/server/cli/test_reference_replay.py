"""`specscope reference replay`: what it tells Specscope, and what it says when a replay cannot be."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.collectors.references.writers import FORMATS, write_dump
from tests.server.client import Web
from tests.server.ingest.bodies import make_batch, packed, push
from tests.server.seed import NOW, SERVER

from specscope_collectors.observations import Event
from specscope_collectors.references.errors import DumpError
from specscope_collectors.replays import samples
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.samples import Wanted, read_samples
from specscope_collectors.replays.telling import check_receiver, send_event
from specscope_server.cli.reference import main


def carried(web: Web) -> httpx.MockTransport:
    """Return a transport that leads into the application."""

    def handle(request: httpx.Request) -> httpx.Response:
        path = str(request.url.copy_with(scheme=None, host=None, port=None))
        answer = web.request(request.method, path, content=request.content, headers=dict(request.headers))
        return httpx.Response(answer.status_code, content=answer.content)

    return httpx.MockTransport(handle)


def test_a_replay_is_an_event_of_the_watched_launch(lone_web: Web) -> None:
    batch = make_batch(1)
    assert push(lone_web, packed([batch])).status_code == 200
    server = batch.target.name
    for number in range(2):
        event = Event(
            kind="replay",
            time_ms=NOW - 1_000 + number,
            message="paired replay: slot 0 same",
            detail={"slots": []},
        )
        send_event("http://127.0.0.1:8200", server, None, event, carried(lone_web))
    events = [each for each in lone_web.api("/events", server=server)["events"] if each["kind"] == "replay"]
    assert len(events) == 2
    assert events[0]["message"] == "paired replay: slot 0 same"


def test_a_server_that_is_not_watched_is_said(lone_web: Web) -> None:
    event = Event(kind="replay", time_ms=NOW, message="")
    with pytest.raises(ReplayError, match="does not take it"):
        send_event("http://127.0.0.1:8200", SERVER, None, event, carried(lone_web))
    with pytest.raises(ReplayError, match="does not take it"):
        check_receiver("http://127.0.0.1:8200", SERVER, None, carried(lone_web))


@pytest.mark.parametrize(
    "answer", ["{}", "[]", '{"sequence": "x", "launch_key": 3}', '"\\u001b[2J"'],
    ids=["object", "list", "other types", "text"],
)  # fmt: skip
def test_another_program_at_the_address_of_specscope_is_named(answer: str) -> None:
    far = httpx.MockTransport(lambda request: httpx.Response(200, text=answer))
    event = Event(kind="replay", time_ms=NOW, message="")
    with pytest.raises(
        ReplayError, match=r"http://far:1/? is no Specscope: it answers .* --specscope"
    ) as one:
        check_receiver("http://far:1", SERVER, None, far)
    with pytest.raises(ReplayError, match=r"is no Specscope: it answers") as other:
        send_event("http://far:1", SERVER, None, event, far)
    assert (str(one.value) + str(other.value)).isprintable()


def test_specscope_is_looked_for_before_the_engine_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump(tmp_path / "dump", FORMATS["hybrid"])
    args = ["--server", "http://127.0.0.1:9", "--dump", str(dump), "--specscope", "http://127.0.0.1:7"]
    assert main(["replay", *args]) == 1
    said = capsys.readouterr().err
    assert "Specscope at http://127.0.0.1:7" in said
    assert "127.0.0.1:9" not in said


def test_more_states_than_are_held_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write_dump(tmp_path / "dump", FORMATS["hybrid"])
    found = read_samples(Wanted(root=dump, requests=3, tokens=8))
    monkeypatch.setattr(samples, "MOST_STATE_BYTES", 3 * found.samples[0].states.nbytes)
    assert len(read_samples(Wanted(root=dump, requests=3, tokens=8)).samples) == 3
    monkeypatch.setattr(samples, "MOST_STATE_BYTES", 3 * found.samples[0].states.nbytes - 1)
    with pytest.raises(DumpError, match=r"less than --requests 3, or than --tokens 8"):
        read_samples(Wanted(root=dump, requests=3, tokens=8))


def test_an_engine_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = write_dump(tmp_path / "dump", FORMATS["hybrid"])
    assert main(["replay", "--server", "http://127.0.0.1:9", "--dump", str(dump)]) == 1
    assert "http://127.0.0.1:9 cannot be asked" in capsys.readouterr().err


def test_a_reference_of_another_kind_and_a_missing_dump_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--server", "http://127.0.0.1:9", "--dump", str(tmp_path / "no")]) == 1
    assert "is not there" in capsys.readouterr().err
    rows = tmp_path / "a.npz"
    rows.write_bytes(b"nothing")
    dump = write_dump(tmp_path / "dump", FORMATS["hybrid"])
    assert main(["replay", "--server", "http://127.0.0.1:9", "--dump", str(dump), "--rows", str(rows)]) == 1
    assert "no file of training rows" in capsys.readouterr().err
