"""Which addresses may be connected to: no spelling of a private one gets through."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.alerts.delivery.addresses import PRIVATE, AddressPolicy, parse_networks
from specscope_server.kit.errors import InvalidInput

PUBLIC_ONLY, WITH_PRIVATE = AddressPolicy(), AddressPolicy(allow_private=True)
NEVER = [
    "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "168.63.129.16",
    "100.100.100.200", "169.254.1.1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "0.0.0.0", "::",
    "255.255.255.255",
    "240.0.0.1", "2002:a9fe:a9fe::1", "64:ff9b:1::a9fe:a9fe", "::169.254.169.254", "fec0::1",
]  # fmt: skip
ONLY_IF_ALLOWED = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd12::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "::10.0.0.1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", NEVER)
def test_never(address: str) -> None:
    assert PUBLIC_ONLY.refusal(address)
    assert WITH_PRIVATE.refusal(address)


@pytest.mark.parametrize("address", ONLY_IF_ALLOWED)
def test_private_only_if_allowed(address: str) -> None:
    assert PUBLIC_ONLY.refusal(address)
    assert WITH_PRIVATE.refusal(address) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert PUBLIC_ONLY.refusal(address) is None


def test_the_operator_opens_networks_but_never_metadata() -> None:
    policy = AddressPolicy(networks=parse_networks(["10.1.0.0/16", "169.254.0.0/16"]))
    assert policy.refusal("10.1.2.3") is None
    assert policy.refusal("::ffff:10.1.2.3") is None
    assert policy.refusal("10.2.0.1")
    assert policy.refusal("169.254.169.254")
    with pytest.raises(InvalidInput, match=r"'10\.1' is no network"):
        parse_networks(["10.1"])


@given(st.sampled_from([net for net in PRIVATE if net.version == 4]), st.integers(0, 2**32 - 1))
def test_a_private_address_is_refused_however_it_is_wrapped(
    network: ipaddress.IPv4Network, number: int
) -> None:
    address = ipaddress.IPv4Address(int(network.network_address) + number % network.num_addresses)
    inner = int(address)
    wrapped = [
        address,
        *(ipaddress.IPv6Address(prefix | inner) for prefix in (0xFFFF << 32, 0x64FF9B << 96, 0)),
    ]
    wrapped.append(ipaddress.IPv6Address((0x2002 << 112) | (inner << 80)))
    assert all(PUBLIC_ONLY.refusal(str(each)) for each in wrapped)


@pytest.mark.parametrize("address", ["64:ff9b:1:7f00:0:100:808:808", "64:ff9b:1::808:808", "::ffff:0:7f00:1"])
def test_local_translation_is_never_reached(address: str) -> None:
    """Which IPv4 address is inside depends on how long the network's prefix is: nobody can tell."""
    assert WITH_PRIVATE.refusal(address)
    opened = AddressPolicy(networks=parse_networks(["64:ff9b:1::/48"]))
    assert opened.refusal("64:ff9b:1::a9fe:a9fe"), "what may be metadata stays closed"
