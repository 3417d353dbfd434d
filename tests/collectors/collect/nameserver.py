"""A name server on loopback that answers over UDP as it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


@dataclass
class NameServer:
    """Records by (name, type); a name without any does not exist."""

    port: int = 0
    records: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    ttl: int = 60
    rcode: dns.rcode.Rcode | None = None
    """Answered to everything, e.g. SERVFAIL."""
    is_silent: bool = False
    asked: int = 0

    def answer(self, wire: bytes) -> bytes | None:
        """Return the answer to one question."""
        query = dns.message.from_wire(wire)
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        self.asked += 1
        if self.is_silent:
            return None
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        found = self.records.get((name, kind))
        if self.rcode is not None:
            response.set_rcode(self.rcode)
        elif found:
            response.answer.append(dns.rrset.from_text(question.name, self.ttl, "IN", kind, *found))
        elif not any(known == name for known, _ in self.records):
            response.set_rcode(dns.rcode.NXDOMAIN)
        return response.to_wire()


@contextlib.contextmanager
def name_server() -> Iterator[NameServer]:
    """Run one while the block runs."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    server = NameServer(port=listener.getsockname()[1])

    def serve() -> None:
        while True:
            wire, peer = listener.recvfrom(4096)
            if not wire:
                return
            answer = server.answer(wire)
            if answer is not None:
                listener.sendto(answer, peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closing:
            closing.sendto(b"", ("127.0.0.1", server.port))
        thread.join(5)
        listener.close()
