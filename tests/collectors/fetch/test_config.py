"""Targets as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specscope_collectors.config import (
    CollectorOptions,
    OptionsError,
    TargetError,
    parse_target,
    parse_targets,
)


@pytest.mark.parametrize(
    ("text", "name", "base_url"),
    [
        ("gpu1:30000", "gpu1:30000", "http://gpu1:30000"),
        ("http://gpu1:30000/", "gpu1:30000", "http://gpu1:30000"),
        ("http://gpu1:30000/metrics", "gpu1:30000", "http://gpu1:30000"),
        ("HTTPS://GPU1/llm/metrics/", "gpu1:443/llm", "https://gpu1/llm"),
        ("http://proxy:8000/llm/a", "proxy:8000/llm/a", "http://proxy:8000/llm/a"),
        ("prod=http://gpu1:30000", "prod", "http://gpu1:30000"),
        ("prod a = gpu1:30000", "prod a", "http://gpu1:30000"),
        ("[::1]:30000", "[::1]:30000", "http://[::1]:30000"),
        (" gpu1 ", "gpu1:80", "http://gpu1"),
    ],
)
def test_accepted(text: str, name: str, base_url: str) -> None:
    target = parse_target(text)
    assert (target.name, target.base_url) == (name, base_url)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://me:secret@gpu1:30000", "SPECSCOPE_ENGINE_API_KEY"),
        ("me:secret@gpu1:30000", "SPECSCOPE_ENGINE_API_KEY"),
        ("ftp://gpu1", "'ftp'"),
        ("", "HOST:PORT"),
        ("gpu1:port", "not a URL"),
        ("gpu1:99999", "not a URL"),
        ("http://", "no host"),
        ("gpu 1:30000", "blanks"),
        ("http://gpu1/?token=secret", "base URL"),
        ("http://[::1", "not a URL"),
        ("me:secret@gpu1:port", "not a URL"),
        ("http://me:secret@[::1", "not a URL"),
        ("gpu1:0", "port 0"),
        ("http://xn--.:80", "not a URL"),
        ("gpu\u202e1:80", "not a URL"),
    ],
)
def test_rejected_with_reason_and_without_the_secret(text: str, words: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_names_must_be_unique() -> None:
    with pytest.raises(TargetError, match="two targets have this name"):
        parse_targets(["gpu1:30000", "http://gpu1:30000/"])
    assert [target.name for target in parse_targets(["a=gpu1:30000", "b=gpu1:30000"])] == ["a", "b"]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_target_or_a_target_error(text: str) -> None:
    try:
        target = parse_target(text)
    except TargetError:
        return
    assert target.base_url.startswith(("http://", "https://"))
    assert parse_target(target.base_url).base_url == target.base_url


@pytest.mark.parametrize("name", ["scrape_interval_seconds", "concurrency", "max_body_bytes"])
def test_options_must_be_positive(name: str) -> None:
    with pytest.raises(OptionsError, match=name):
        CollectorOptions(**{name: 0})


def test_the_key_is_not_in_the_representation() -> None:
    assert "k-123" not in repr(CollectorOptions(api_key="k-123"))


def test_a_certificate_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(OptionsError, match=r"missing\.pem"):
        CollectorOptions(ca_file="missing.pem")
