"""A chat room on loopback, and the Debian package that says in it what an Alertmanager's webhooks tell."""

from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.support.alertmanager import until
from tests.support.needs import need
from tests.support.rig import free_port, log_tail

START_SECONDS = 120.0
ROOM = "alerts"
RELAY = "alertmanager-irc-relay"
CONFIG = """
http_host: 127.0.0.1
http_port: {port}
irc_host: 127.0.0.1
irc_port: {irc_port}
irc_use_ssl: no
irc_nickname: relay
irc_realname: relay
irc_channels: [{{name: "#{room}"}}]
use_privmsg: yes
msg_template: "{{{{ .Labels.alertname }}}} of {{{{ .Labels.server }}}} is {{{{ .Status }}}}"
"""


class Room(socketserver.ThreadingTCPServer):
    """Lets anybody in and keeps what is said."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.said: list[str] = []
        self.joined = threading.Event()


class _Talk(socketserver.StreamRequestHandler):
    """As much of RFC 2812 as a client needs that joins and speaks."""

    server: Room

    def handle(self) -> None:
        """Answer until the client leaves."""
        for raw in self.rfile:
            verb, _, rest = raw.decode().rstrip("\r\n").partition(" ")
            if verb == "USER":
                self._say(":room 001 relay :welcome")
            elif verb == "PING":
                self._say(f":room PONG room {rest}")
            elif verb == "JOIN":
                self._say(f":relay!relay@room JOIN {rest.split()[0]}")
                self.server.joined.set()
            elif verb in ("PRIVMSG", "NOTICE") and rest.startswith("#"):
                self.server.said.append(rest.partition(" :")[2])

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def running_relay(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Start room and relay; yield the URL of its webhook, and what is said in the room."""
    need(RELAY, RELAY)
    port = free_port()
    with Room() as room, (folder / "relay.log").open("ab") as log:
        threading.Thread(target=room.serve_forever, daemon=True).start()
        config = folder / "relay.yml"
        config.write_text(CONFIG.format(port=port, irc_port=room.server_address[1], room=ROOM))
        process = subprocess.Popen([RELAY, "--config", str(config)], stdout=log, stderr=log)
        try:
            assert room.joined.wait(START_SECONDS), log_tail(folder / "relay.log")
            until(lambda: _listens(port), START_SECONDS)
            yield f"http://127.0.0.1:{port}/{ROOM}", room.said
        finally:
            process.kill()
            process.wait(10)
            room.shutdown()


def _listens(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
    except httpx.HTTPError:
        return False
    return True
