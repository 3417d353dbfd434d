"""One set of names for flags, environment and file; secrets stay secret; wrong values are explained."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specscope_server.cli.flags import flag_names
from specscope_server.kit.errors import InvalidInput
from specscope_server.settings import SECRETS, Settings, is_loopback, load_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith("SPECSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return


def test_defaults_are_safe() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.token) == ("127.0.0.1", 8200, None)
    assert settings.database.startswith("sqlite:///")
    assert settings.watch == []


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_has_its_unit_in_its_name(name: str) -> None:
    field = Settings.model_fields[name]
    assert field.description
    assert field.description.endswith(".")
    if field.annotation in (int, float) and name != "port":
        assert name.rpartition("_")[2] in ("seconds", "days", "bytes", "target")


def test_every_setting_but_the_secrets_is_a_flag() -> None:
    assert set(flag_names()) == set(Settings.model_fields) - set(SECRETS)


def test_flags_beat_the_environment_which_beats_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "specscope.toml").write_text('port = 1\nlog_level = "debug"\nscrape_interval_seconds = 9\n')
    monkeypatch.setenv("SPECSCOPE_PORT", "2")
    monkeypatch.setenv("SPECSCOPE_LOG_LEVEL", "error")
    settings = load_settings({"port": "3", "log_level": None})
    assert (settings.port, settings.log_level, settings.scrape_interval_seconds) == (3, "error", 9)


def test_the_file_is_named_by_flag_or_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("port = 1")
    (tmp_path / "b.toml").write_text("port = 2")
    monkeypatch.setenv("SPECSCOPE_CONFIG", "a.toml")
    assert load_settings().port == 1
    assert load_settings(config="b.toml").port == 2


def test_lists_come_from_repeated_flags_arrays_or_one_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert load_settings({"watch": ["http://a", "b=http://b"]}).watch == ["http://a", "b=http://b"]
    (tmp_path / "specscope.toml").write_text('watch = ["http://c"]')
    assert load_settings().watch == ["http://c"]
    monkeypatch.setenv("SPECSCOPE_WATCH", "http://d, http://e http://f")
    assert load_settings().watch == ["http://d", "http://e", "http://f"]
    monkeypatch.setenv("SPECSCOPE_WATCH", "")
    assert load_settings().watch == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('hots = "0.0.0.0"', "there is no setting 'hots'. Did you mean 'host'?"),
        ("port = ", "is not TOML"),
        ("port = 70000", "setting port: Input should be less than or equal to 65535"),
        ('log_level = "loud"', "setting log_level: Input should be 'debug'"),
        ("scrape_interval_seconds = 0", "setting scrape_interval_seconds"),
        (
            "retention_raw_days = inf",
            "setting retention_raw_days: Input should be less than",
        ),
        ("retention_events_days = nan", "setting retention_events_days"),
    ],
)
def test_wrong_files_are_explained(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "specscope.toml").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load_settings()
    assert message in caught.value.detail


def test_a_named_file_must_exist() -> None:
    with pytest.raises(InvalidInput, match=r"nowhere.toml cannot be read: No such file .* check --config"):
        load_settings(config="nowhere.toml")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "gpu1", ""])
def test_other_machines_only_with_a_token(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="no token is set: set SPECSCOPE_TOKEN"):
        load_settings({"host": host})
    monkeypatch.setenv("SPECSCOPE_TOKEN", "s3cret")
    assert load_settings({"host": host}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert load_settings({"host": host}).token is None


def test_secrets_come_from_files_and_never_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("SPECSCOPE_TOKEN_FILE", "token")
    monkeypatch.setenv("SPECSCOPE_ENGINE_API_KEY", "k3y")
    settings = load_settings()
    assert settings.token is not None
    assert settings.token.get_secret_value() == "s3cret"
    for text in (repr(settings), str(settings), settings.model_dump_json()):
        assert "s3cret" not in text
        assert "k3y" not in text


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_token_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    monkeypatch.setenv("SPECSCOPE_TOKEN_FILE", "token")
    with pytest.raises(InvalidInput, match="setting token: is set but empty"):
        load_settings()


def test_a_missing_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECSCOPE_TOKEN_FILE", "nowhere")
    with pytest.raises(InvalidInput, match="SPECSCOPE_TOKEN_FILE=nowhere cannot be read"):
        load_settings()


@pytest.mark.parametrize("value", ["inf", "1e308", "nan", "0"])
def test_an_interval_that_never_ends_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="info_interval_seconds"):
        load_settings({"info_interval_seconds": value})
