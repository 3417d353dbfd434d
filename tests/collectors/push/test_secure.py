"""Pushing over TLS, to a real server with a certificate of an authority of its own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import trustme
from tests.collectors.push.far import Far
from tests.collectors.spool.spools import COLLECTOR, make_batch, opened

from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.push_status import PushStatus
from specscope_collectors.spool_sink import SpoolSink


class Handler(BaseHTTPRequestHandler):
    """Hands requests to a `Far`."""

    far: Far

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        asked = httpx.Request("POST", f"https://far{self.path}", headers=dict(self.headers), content=content)
        answer = self.far(asked)
        self.send_response(answer.status_code)
        self.send_header("content-type", answer.headers["content-type"])
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        """Say nothing."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(authority: trustme.CA, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server whose certificate holds for the name of the parameter."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"far": Far()})) as found:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(request.param).configure_cert(context)
        found.socket = context.wrap_socket(found.socket, server_side=True)
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{found.server_address[1]}"
        found.shutdown()
        thread.join()


def push(server: str, ca_file: Path | None, folder: Path) -> PushStatus:
    """Push one batch and return how it went."""
    with opened(folder) as spool:
        sink = SpoolSink(spool, COLLECTOR)
        options = PushOptions(server=server, ca_file=str(ca_file) if ca_file else None)
        pusher = Pusher(spool, sink, options, COLLECTOR)
        pusher._health_at = float("inf")  # only what is in the spool
        sink.apply(make_batch(1))
        pusher.step()
        status = pusher.status()
        pusher.stop(0)
        return status


@pytest.mark.parametrize("server", ["127.0.0.1"], indirect=True)
def test_an_authority_of_ones_own(server: str, authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    status = push(server, tmp_path / "ca.pem", tmp_path / "spool")
    assert (status.state, status.sent, status.waiting) == ("ok", 1, 0)


@pytest.mark.parametrize("server", ["127.0.0.1"], indirect=True)
def test_an_authority_that_is_not_known(server: str, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    status = push(server, tmp_path / "other.pem", tmp_path / "spool")
    assert (status.state, status.sent, status.waiting) == ("waiting", 0, 1)
    assert "certificate verify failed" in status.problem


@pytest.mark.parametrize("server", ["elsewhere.example"], indirect=True)
def test_a_certificate_of_another_server(server: str, authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    status = push(server, tmp_path / "ca.pem", tmp_path / "spool")
    assert (status.sent, status.waiting) == (0, 1)
    assert "127.0.0.1" in status.problem
