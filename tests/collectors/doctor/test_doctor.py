"""`specscope doctor` against real servers: what it says, which remedy it names, how it exits."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator

import pytest
import trustme
from tests.collectors.fetch.servers import Answering, Server, always, hang, response, serving
from tests.collectors.runner.engine import RANK, Engine

from specscope_server.cli.doctor import main

LOADS = (
    b'{"timestamp":"2026-11-29T21:06:55+00:00","version":"0.5.23",'
    b'"loads":[{"dp_rank":0,"num_running_reqs":3}]}'
)
TIMER = 'sglang:forward_execution_seconds_total{category="target_verify",' + RANK.format(
    model="models/tiny-target", rank=0
)
NOT_FOUND = always(response(b"", "404 Not Found"))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in ("SPECSCOPE_WATCH", "SPECSCOPE_ENGINE_API_KEY", "SPECSCOPE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(str(tmp_path))


@pytest.fixture
def engine() -> Engine:
    """Return an engine at which everything can be seen."""
    return Engine(extra=TIMER + "} 1.5\n", overrides={"/v1/loads": always(response(LOADS))})


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    with serving(engine) as running:
        yield running


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_all_is_well(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--watch", server.url]) == 0
    text = said(capsys)
    assert "SGLang 0.5.23, model models/tiny-target, TP1 DP1 PP1 EP1" in text
    assert "EAGLE3, K = 3 steps, D = 4 verified tokens, top-k 1, draft model models/tiny-eagle3" in text
    assert "on: device time" in text
    assert "1 of 1 report" in text
    assert "Everything that Specscope uses can be seen." in text
    assert set(server.paths()) == {"/metrics", "/server_info", "/model_info", "/v1/loads"}


@pytest.mark.parametrize(
    ("path", "answering", "words", "remedy"),
    [
        ("/metrics", NOT_FOUND, "missing metrics: off", "--enable-metrics"),
        ("/metrics", always(response(b"<html>")), "bad metrics: ", "base URL of an SGLang"),
        ("/server_info", always(response(b"", "401 No")), "none was sent", "SPECSCOPE_ENGINE_API_KEY"),
        ("/server_info", hang, "0.5.15 or later by its metrics", "overloaded"),
    ],
)
def test_one_thing_is_missing(
    server: Server,
    engine: Engine,
    capsys: pytest.CaptureFixture[str],
    path: str,
    answering: Answering,
    words: str,
    remedy: str,
) -> None:
    engine.overrides[path] = answering
    assert main(["--watch", server.url, "--scrape-timeout-seconds", "0.5"]) == 1
    text = said(capsys)
    assert words in text
    assert remedy in text


def test_what_flags_would_show_more(
    server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.extra = ""
    engine.info |= {"tp_size": 8, "speculative_algorithm": None}
    assert main(["--watch", server.url]) == 1
    text = said(capsys)
    assert "SGLANG_ENABLE_METRICS_DEVICE_TIMER=1" in text
    assert "--enable-metrics-for-all-schedulers" in text
    assert "speculation: off in this launch → start SGLang with --speculative-algorithm EAGLE3" in text


def test_an_old_engine_is_told_what_a_newer_one_shows(
    server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.info |= {"version": "0.5.8"}
    engine.overrides["/v1/loads"] = NOT_FOUND
    assert main(["--watch", server.url]) == 1
    text = said(capsys)
    assert "verify calls (exact accept length): cannot be seen → upgrade SGLang to 0.5.15 or later" in text
    assert "no /v1/loads in this version" in text


def test_the_wrong_key_is_told_from_no_key_and_never_printed(
    server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.overrides["*"] = always(response(b"", "401 No"))
    assert main(["--watch", server.url, "--api-key", "wrong-key-123"]) == 1
    captured = capsys.readouterr()
    assert "not accepted" in captured.out
    assert "wrong-key-123" not in captured.out + captured.err


def test_the_key_of_the_environment_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECSCOPE_ENGINE_API_KEY", "right-key-123")
    assert main(["--watch", server.url]) == 0
    assert {request.headers["authorization"] for request in server.requests} == {"bearer right-key-123"}
    assert "right-key-123" not in capsys.readouterr().out


def test_secrets_of_the_engine_are_not_printed(
    server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.info |= {"api_key": "engine-secret-1", "model_path": "http://user:engine-secret-2@host/model"}
    for output in ("text", "json"):
        main(["--watch", server.url, "--format", output])
    assert "engine-secret" not in capsys.readouterr().out


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("localhost", 0))
        assert main(["--watch", f"localhost:{unused.getsockname()[1]}"]) == 2
    text = said(capsys)
    assert "cannot be reached" in text
    assert "Nothing can be seen there." in text


def test_something_else_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(always(response(b"<html>welcome</html>", content_type="text/html"))) as server:
        assert main(["--watch", server.url]) == 2
    assert "HTML" in said(capsys)


def test_a_hanging_server(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(hang) as server:
        assert main(["--watch", server.url, "--scrape-timeout-seconds", "0.2"]) == 2
    assert "no complete answer within 0.2 s" in said(capsys)


def test_tls(tmp_path: object, capsys: pytest.CaptureFixture[str], engine: Engine) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with serving(engine, context) as server, authority.cert_pem.tempfile() as ca_file:
        assert main(["--watch", server.url]) == 2
        assert "--ca-file" in said(capsys)
        assert main(["--watch", server.url, "--ca-file", ca_file]) == 0
        assert main(["--watch", server.url, "--no-tls-verify"]) == 0


def test_json_for_scripts_and_the_worst_status_of_several(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(always(response(b"<html>"))) as other:
        assert main(["--watch", f"good={server.url}", "--watch", f"bad={other.url}", "--format", "json"]) == 2
    good, bad = json.loads(capsys.readouterr().out)
    assert (good["target"], good["exit_status"]) == ("good", 0)
    assert (bad["target"], bad["exit_status"]) == ("bad", 2)
    assert {finding["grade"] for finding in good["findings"]} == {"ok"}
    assert all(finding["remedy"] for finding in bad["findings"] if finding["grade"] == "bad")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--watch"),
        (["--watch", "ftp://gpu1"], "ftp"),
        (["--watch", "gpu1", "--watch", "gpu1"], "two targets"),
        (["--watch", "https://gpu1", "--ca-file", "missing.pem"], "missing.pem"),
    ],
)
def test_usage_errors_name_the_input(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_text_of_an_engine_is_shown_and_not_obeyed(
    server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.info |= {"model_path": "[red]x[/red]\x1b]0;owned\x07"}
    main(["--watch", server.url])
    text = capsys.readouterr().out
    assert "[red]x[/red]" in text
    assert "\x1b]0" not in text


def test_the_demo_says_so(server: Server, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.info |= {"specscope_demo": True}
    main(["--watch", server.url])
    assert "demo: simulated numbers" in said(capsys)
