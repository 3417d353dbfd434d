"""The channels of the guide can be used as they stand, and every kind is in the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.docs.pages import blocks, headings, read
from tests.support.cards import NOW_MS, notification

from specscope_server.alerts.channels.contract import Context
from specscope_server.alerts.channels.from_file import read_channels
from specscope_server.alerts.channels.kinds import kind_of, kinds

PAGE = "docs/guide/alert-channels.md"


def test_the_channels_of_the_guide_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PAGERDUTY_KEY", "SMTP_PASSWORD", "TOOL_AUTHORIZATION"):
        monkeypatch.setenv(name, "a" * 32)
    url = tmp_path / "slack-url"
    url.write_text("https://hooks.slack.com/services/T/B/X")
    texts = [block.text for block in blocks(read(PAGE)) if block.language == "yaml"]
    entries = [
        entry
        for text in texts
        for entry in yaml.safe_load(text.replace("/etc/specscope/slack-url", str(url)))["channels"]
    ]
    found = read_channels(entries)
    assert [each.kind for each in found] == ["pagerduty", "slack", "alertmanager", "email", "template"]
    template = kind_of("template")
    config = template.config.model_validate(found[-1].settings)
    assert template.render(config, notification(), Context("own-tool", "msg_1", NOW_MS))


def test_every_kind_has_its_place_in_the_reference() -> None:
    assert set(kinds()) <= set(headings(read("docs/reference/channels.md")))
