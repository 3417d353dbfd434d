"""Servers from DNS, asked of a real name server on loopback."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dns.rcode
import pytest
from tests.collectors.collect.jobs import wait_until
from tests.collectors.collect.nameserver import NameServer, name_server

from specscope_collectors.discoveries import Answer, DiscoveryError
from specscope_collectors.discovery.dns import SHORTEST_SECONDS, Config, Dns
from specscope_collectors.observations import HealthState


@pytest.fixture
def server() -> Iterator[NameServer]:
    with name_server() as running:
        yield running


class Watch:
    """A discovery whose time is told."""

    def __init__(self, at: int, **config: object) -> None:
        self.now = 0.0
        values = {"resolvers": [f"127.0.0.1:{at}"], "timeout_seconds": 0.5, **config}
        self.dns = Dns(Config(**values), monotonic=lambda: self.now)  # type: ignore[arg-type]

    def look(self) -> Answer:
        return asyncio.run(self.dns.look())

    def urls(self) -> list[str]:
        return sorted(listed.url for listed in self.look().listed)

    def error(self) -> DiscoveryError:
        with pytest.raises(DiscoveryError) as caught:
            self.look()
        return caught.value


def test_srv_records_bring_host_and_port(server: NameServer) -> None:
    name = "_sglang._tcp.example.test"
    server.records[(name, "SRV")] = ["0 0 30000 gpu1.example.test.", "0 0 30001 gpu2.example.test."]
    assert Watch(server.port, names=[name], scheme="https").urls() == [
        "https://gpu1.example.test:30000",
        "https://gpu2.example.test:30001",
    ]


def test_address_records_share_a_port(server: NameServer) -> None:
    server.records[("sglang.test", "A")] = ["10.0.0.1", "10.0.0.2"]
    server.records[("sglang.test", "AAAA")] = ["fd00::1"]
    assert Watch(server.port, names=["sglang.test"], type="A", port=30000).urls() == [
        "http://10.0.0.1:30000",
        "http://10.0.0.2:30000",
    ]
    six = Watch(server.port, names=["sglang.test"], type="AAAA", port=30000)
    assert six.urls() == ["http://[fd00::1]:30000"]


@pytest.mark.parametrize(("ttl", "seconds"), [(0, SHORTEST_SECONDS), (12, 12), (86_400, 86_400)])
def test_it_is_asked_again_when_the_record_expires(server: NameServer, ttl: int, seconds: float) -> None:
    server.ttl = ttl
    server.records[("a.test", "A")] = ["10.0.0.1"]
    assert Watch(server.port, names=["a.test"], type="A", port=1).look().next_seconds == seconds


def test_a_name_without_such_records_is_an_empty_list(server: NameServer) -> None:
    server.records[("a.test", "TXT")] = ["hello"]
    assert Watch(server.port, names=["a.test"], type="A", port=1).look() == Answer(())


def test_errors_say_what_was_asked_and_what_to_do(server: NameServer) -> None:
    watch = Watch(server.port, names=["no.test"], type="A", port=1)
    error = watch.error()
    assert (str(error), error.remedy) == ("A of no.test: the name does not exist", "correct the name")
    server.is_silent = True
    error = watch.error()
    assert error.state is HealthState.TIMEOUT
    assert str(error) == "A of no.test: no answer in 0.5 s"
    server.is_silent, server.rcode = False, dns.rcode.SERVFAIL
    assert "SERVFAIL" in str(watch.error())


def test_one_failing_name_keeps_its_last_list_for_a_while(server: NameServer) -> None:
    server.records = {("a.test", "A"): ["10.0.0.1"], ("b.test", "A"): ["10.0.0.2"]}
    watch = Watch(server.port, names=["a.test", "b.test"], type="A", port=1, keep_seconds=100)
    assert watch.urls() == ["http://10.0.0.1:1", "http://10.0.0.2:1"]
    del server.records[("b.test", "A")]
    watch.now = 99
    answer = watch.look()
    assert len(answer.listed) == 2
    assert answer.keeps == "A of b.test: the name does not exist (its last good list is used)"
    watch.now = 199
    assert watch.urls() == ["http://10.0.0.1:1"]
    server.records[("b.test", "A")] = ["10.0.0.3"]
    assert watch.urls() == ["http://10.0.0.1:1", "http://10.0.0.3:1"]


def test_hostile_names_in_records_are_text(server: NameServer) -> None:
    name = "_s._tcp.test"
    server.records[(name, "SRV")] = [r"0 0 80 evil\.host\@x.test."]
    (listed,) = Watch(server.port, names=[name]).look().listed
    assert listed.url.startswith("http://evil")  # whether it can be watched is decided where lists are read


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_against_dnsmasq(tmp_path: Path) -> None:
    binary = shutil.which("dnsmasq") or shutil.which("dnsmasq", path="/usr/sbin")
    if binary is None:
        assert not os.environ.get("CI"), "dnsmasq is missing (Debian package dnsmasq-base)"
        pytest.skip("dnsmasq is not installed (Debian package dnsmasq-base)")
    port = free_port()
    records = [
        "--host-record=gpu1.lan,10.1.1.1", "--host-record=gpu2.lan,10.1.1.2",
        "--srv-host=_sglang._tcp.lan,gpu1.lan,30000", "--srv-host=_sglang._tcp.lan,gpu2.lan,30001",
    ]  # fmt: skip
    options = [
        "--no-daemon",
        "--no-resolv",
        "--no-hosts",
        "--conf-file=/dev/null",
        "--listen-address=127.0.0.1",
    ]
    process = subprocess.Popen(
        [binary, *options, "--bind-interfaces", f"--port={port}", f"--pid-file={tmp_path / 'pid'}", *records],
        stderr=subprocess.DEVNULL,
    )
    try:
        watch = Watch(port, names=["_sglang._tcp.lan"], timeout_seconds=2)
        wait_until(lambda: len(_try(watch)) == 2)
        assert watch.urls() == ["http://gpu1.lan:30000", "http://gpu2.lan:30001"]
    finally:
        process.terminate()
        process.wait(10)
    error = watch.error()
    assert error.state in (HealthState.TIMEOUT, HealthState.UNREACHABLE)


def _try(watch: Watch) -> list[str]:
    try:
        return watch.urls()
    except DiscoveryError:
        return []
