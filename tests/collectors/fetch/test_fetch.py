"""Every way in which an answer can go wrong has a state, a detail and a remedy of its own."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import time
import tracemalloc
import zlib

import pytest
import trustme
from tests.collectors.fetch.servers import Answering, always, drip, flood, hang, reset, response, serving

from specscope_collectors.config import MIB, CollectorOptions, parse_target
from specscope_collectors.fetch import Answer, fetch, headers_for, make_client
from specscope_collectors.observations import HealthState

BODY = b"# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 1\n"


def get(url: str, options: CollectorOptions | None = None, times: int = 1) -> Answer:
    options = options or CollectorOptions()

    async def run() -> Answer:
        async with make_client(options, with_tls=url.startswith("https")) as client:
            for _ in range(times):
                answer = await fetch(
                    client, url, options=options, headers=headers_for(url, parse_target(url), options)
                )
        return answer

    return asyncio.run(run())


def ask(answering: Answering, options: CollectorOptions | None = None) -> Answer:
    with serving(answering) as server:
        return get(server.url, options)


def test_a_good_answer() -> None:
    answer = ask(always(response(BODY, content_type="text/plain; version=0.0.4")))
    assert (answer.state, answer.status, answer.body, answer.body_bytes) == (
        HealthState.OK,
        200,
        BODY,
        len(BODY),
    )
    assert answer.content_type == "text/plain; version=0.0.4"
    assert answer.ok
    assert 0 < answer.duration_seconds < 60


def test_a_slow_drip_cannot_beat_the_total_deadline() -> None:
    started = time.monotonic()
    answer = ask(drip, CollectorOptions(scrape_timeout_seconds=0.3))
    assert answer.state is HealthState.TIMEOUT
    assert "0.3 s" in answer.detail
    assert answer.remedy
    assert time.monotonic() - started < 30


def test_a_server_that_never_answers_times_out() -> None:
    assert ask(hang, CollectorOptions(scrape_timeout_seconds=0.2)).state is HealthState.TIMEOUT


def test_a_streamed_body_of_200_megabytes_is_given_up_early_in_bounded_memory() -> None:
    tracemalloc.start()
    try:
        answer = ask(flood(200 * MIB), CollectorOptions(max_body_bytes=4 * MIB))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.state is HealthState.TOO_LARGE
    assert answer.body == b""
    assert answer.body_bytes is not None
    assert 4 * MIB < answer.body_bytes < 6 * MIB
    assert "SPECSCOPE_MAX_BODY_BYTES" in answer.remedy
    assert peak < 24 * MIB


def test_a_declared_length_over_the_limit_is_refused_before_reading() -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-length: 209715200\r\n\r\n"
    answer = ask(always(raw))
    assert (answer.state, answer.body_bytes) == (HealthState.TOO_LARGE, 209715200)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compression_bomb_is_bounded(encoding: str) -> None:
    plain = bytes(256 * MIB)
    bomb = gzip.compress(plain, 9) if encoding == "gzip" else zlib.compress(plain, 9)
    del plain
    tracemalloc.start()
    try:
        answer = ask(
            always(response(bomb, content_encoding=encoding)), CollectorOptions(max_body_bytes=2 * MIB)
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.state is HealthState.TOO_LARGE
    assert peak < 16 * MIB


def test_compressed_answers_are_read_although_not_asked_for() -> None:
    assert ask(always(response(gzip.compress(BODY), content_encoding="gzip"))).body == BODY


@pytest.mark.parametrize(
    ("body", "encoding", "word"),
    [
        (gzip.compress(BODY, mtime=0)[:20], "gzip", "middle"),
        (b"nonsense", "gzip", "damaged"),
        (BODY, "br", "'br'"),
    ],
)
def test_bad_compression_is_invalid(body: bytes, encoding: str, word: str) -> None:
    answer = ask(always(response(body, content_encoding=encoding)))
    assert answer.state is HealthState.INVALID
    assert word in answer.detail


def test_a_redirect_is_reported_with_its_host_and_not_followed() -> None:
    with serving(always(response(BODY))) as other:
        location = f"http://user:pw@localhost:{other.port}/metrics"
        answer = ask(always(response(b"", "302 Found", location=location)))
        assert other.requests == []
    assert answer.state is HealthState.HTTP_ERROR
    assert f"to localhost:{other.port}" in answer.detail
    assert "pw" not in answer.detail
    assert answer.status == 302


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("401 Unauthorized", HealthState.UNAUTHORIZED),
        ("403 Forbidden", HealthState.UNAUTHORIZED),
        ("404 Not Found", HealthState.DISABLED),
        ("500 Internal Server Error", HealthState.HTTP_ERROR),
        ("503 Service Unavailable", HealthState.HTTP_ERROR),
        ("204 No Content", HealthState.HTTP_ERROR),
    ],
)
def test_status_codes(status: str, state: HealthState) -> None:
    answer = ask(always(response(b"" if status.startswith("204") else b"no", status)))
    assert (answer.state, answer.status) == (state, int(status[:3]))
    assert status[:3] in answer.detail


@pytest.mark.parametrize(("key", "words"), [(None, "none was sent"), ("wrong-key", "not accepted")])
def test_unauthorized_says_whether_a_key_was_sent(key: str | None, words: str) -> None:
    answer = ask(always(response(b"", "401 Unauthorized")), CollectorOptions(api_key=key))
    assert words in answer.detail
    assert "SPECSCOPE_ENGINE_API_KEY" in answer.remedy
    assert "wrong-key" not in answer.detail + answer.remedy


@pytest.mark.parametrize(
    "answering",
    [
        reset,
        always(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nsglang:"),
        always(b"SSH-2.0-OpenSSH_9.6\r\n"),
        always(b""),
        always(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n"),
        always(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000),
    ],
    ids=["reset", "truncated", "not HTTP", "nothing", "bad chunk", "endless header"],
)
def test_broken_answers_are_told_from_no_answer(answering: Answering) -> None:
    answer = ask(answering)
    assert answer.state in (HealthState.INVALID, HealthState.UNREACHABLE)
    assert answer.detail
    assert answer.remedy
    assert answer.body == b""


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("localhost", 0))
        answer = get(f"http://localhost:{unused.getsockname()[1]}")
    assert answer.state is HealthState.UNREACHABLE
    assert "30000" in answer.remedy


def test_an_unknown_host() -> None:
    answer = get("http://no-such-host.invalid:30000")
    assert answer.state in (HealthState.UNREACHABLE, HealthState.TIMEOUT)
    assert not answer.nothing_serves  # the name is not known here; the server may well work


def test_only_a_refused_connection_or_a_proxys_word_shows_that_nothing_serves() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert get(f"http://127.0.0.1:{port}").nothing_serves
    assert get(f"http://localhost:{port}").nothing_serves


def certificates(name: str) -> tuple[trustme.CA, ssl.SSLContext]:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return authority, context


def test_an_unknown_certificate_authority_is_a_tls_error_and_can_be_trusted(tmp_path: object) -> None:
    authority, context = certificates("localhost")
    with authority.cert_pem.tempfile() as ca_file, serving(always(response(BODY)), context) as server:
        refused = get(server.url)
        trusted = get(server.url, CollectorOptions(ca_file=ca_file))
        unverified = get(server.url, CollectorOptions(tls_verify=False))
    assert refused.state is HealthState.TLS_ERROR
    assert "authority" in refused.remedy
    assert trusted.body == BODY
    assert unverified.body == BODY


def test_a_certificate_for_another_name_is_a_tls_error() -> None:
    authority, context = certificates("other.example")
    with authority.cert_pem.tempfile() as ca_file, serving(always(response(BODY)), context) as server:
        assert get(server.url, CollectorOptions(ca_file=ca_file)).state is HealthState.TLS_ERROR


def test_https_against_a_plain_port_says_so() -> None:
    with serving(always(response(BODY))) as server:
        answer = get(f"https://localhost:{server.port}")
    assert answer.state is HealthState.TLS_ERROR
    assert "http://" in answer.remedy


def test_the_key_goes_to_the_targets_own_origin_only() -> None:
    options = CollectorOptions(api_key="k-123456")
    target = parse_target("http://gpu1:30000/prefix")
    assert (
        headers_for("http://gpu1:30000/prefix/metrics", target, options)["Authorization"] == "Bearer k-123456"
    )
    for other in ("http://gpu2:30000/metrics", "http://gpu1:30001/metrics", "https://gpu1:30000/metrics"):
        assert "Authorization" not in headers_for(other, target, options)


def test_no_cookies_and_no_environment_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving(always(response(BODY, set_cookie="sid=1"))) as server:
        assert get(server.url, times=2).body == BODY
        assert ["cookie" in request.headers for request in server.requests] == [False, False]
