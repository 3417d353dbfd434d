"""Prometheus' file_sd lists: what a Prometheus would read, and the last good list while a file is broken."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.discoveries import Answer, DiscoveryError
from specscope_collectors.discovery.file_sd import Config, FileSd, read_groups
from specscope_collectors.observations import HealthState


def group(*targets: str, **labels: str) -> dict[str, Any]:
    return {"targets": list(targets), "labels": labels}


def write(path: Path, *groups: Any) -> None:
    """Replace the file as a careful writer does."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(list(groups)), encoding="utf-8")
    fresh.rename(path)


def look(found: FileSd) -> Answer:
    return asyncio.run(found.look())


def urls(found: FileSd) -> list[str]:
    return [listed.url for listed in look(found).listed]


def test_labels_mean_what_they_mean_to_prometheus(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write(
        path,
        group("gpu1:30000", "gpu2:30000", rack="r7", __meta_zone="z", name="left"),
        group("x:1", __scheme__="https", __metrics_path__="/prefix/metrics", __address__="gpu3:443"),
    )
    listed = look(FileSd(Config(files=[str(path)]))).listed
    assert [each.url for each in listed] == [
        "http://gpu1:30000", "http://gpu2:30000", "https://gpu3:443/prefix",
    ]  # fmt: skip
    assert (dict(listed[0].labels), listed[0].name) == ({"rack": "r7"}, "left")
    assert (dict(listed[2].labels), listed[2].name) == ({}, None)


def test_yaml_and_globs(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("- targets: [gpu1:1]\n  labels: {rack: r1}\n- targets: ['gpu2:1']\n")
    (tmp_path / "b.yaml").write_text("- targets: ['gpu3:1']\n")
    (tmp_path / "c.json").write_text('[{"targets": ["gpu4:1"]}]')
    (tmp_path / "d.txt").write_text("gpu5:1")
    found = FileSd(Config(files=[str(tmp_path / ending) for ending in ("*.yml", "*.yaml", "*.json")]))
    assert urls(found) == ["http://gpu1:1", "http://gpu2:1", "http://gpu3:1", "http://gpu4:1"]


def test_what_cannot_be_watched_is_refused_entry_by_entry(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write(
        path, group("a:1", __metrics_path__="/stats"), group("b:1", __scheme__="ftp"), group("c:1")
    )  # fmt: skip
    answer = look(FileSd(Config(files=[str(path)])))
    assert [each.url for each in answer.listed] == ["http://c:1"]
    assert answer.refused == (
        "a:1: __metrics_path__ '/stats' does not end in /metrics",
        "b:1: __scheme__ 'ftp' cannot be watched",
    )


def test_a_changed_file_takes_effect_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    found = FileSd(Config(files=[str(path)]))
    write(path, group("a:1"))
    assert urls(found) == ["http://a:1"]
    write(path, group("b:1"))
    assert urls(found) == ["http://b:1"]
    status = path.stat()
    content = path.read_text()
    path.write_text(content.replace("b", "c"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # nothing to be seen from outside
    assert urls(found) == ["http://b:1"]


@pytest.mark.parametrize(
    "broken", ["", "[{", '{"targets": []}', '[{"targets": "a"}]', '[{"targets": [1]}]', "\0"]
)
def test_a_half_written_file_keeps_its_last_good_list(tmp_path: Path, broken: str) -> None:
    one, two = tmp_path / "a.json", tmp_path / "b.json"
    found = FileSd(Config(files=[str(tmp_path / "*.json")]))
    write(one, group("a:1"))
    write(two, group("b:1"))
    assert urls(found) == ["http://a:1", "http://b:1"]
    one.write_text(broken)
    answer = look(found)
    assert [each.url for each in answer.listed] == ["http://a:1", "http://b:1"]
    assert answer.keeps.startswith(f"{one} is no list of targets")
    assert answer.keeps.endswith("(its last good list is used)")
    write(one, group("c:1"))
    answer = look(found)
    assert ([each.url for each in answer.listed], answer.keeps) == (["http://c:1", "http://b:1"], "")


def test_without_any_readable_file_there_is_no_answer(tmp_path: Path) -> None:
    found = FileSd(Config(files=[str(tmp_path / "*.json")]))
    with pytest.raises(DiscoveryError, match="no file matches"):
        look(found)
    (tmp_path / "a.json").write_text("[")
    with pytest.raises(DiscoveryError, match="is no list of targets") as caught:
        look(found)
    assert caught.value.state is HealthState.INVALID
    (tmp_path / "b.json").mkdir()
    with pytest.raises(DiscoveryError):
        look(found)


def test_an_answered_empty_list_is_an_answer(tmp_path: Path) -> None:
    write(tmp_path / "a.json")
    assert look(FileSd(Config(files=[str(tmp_path / "a.json")]))) == Answer(())


def test_yaml_cannot_do_more_than_name_servers(tmp_path: Path) -> None:
    evil = b"- targets: [!!python/object/apply:os.system ['touch /tmp/never']]\n"
    with pytest.raises(DiscoveryError):
        read_groups("a.yml", evil)
    laughs = b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"
    with pytest.raises(DiscoveryError):
        read_groups("a.yml", laughs)
    with pytest.raises(DiscoveryError):
        read_groups("a.yml", b"[" * 5_000)


@given(st.binary(max_size=200), st.sampled_from(["a.json", "a.yml"]))
def test_any_content_is_a_list_or_an_error(content: bytes, name: str) -> None:
    with contextlib.suppress(DiscoveryError):
        listed, refused = read_groups(name, content)
        assert all(each.url for each in listed)
        assert all(refused)
