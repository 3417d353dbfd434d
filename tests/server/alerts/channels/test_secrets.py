"""Secrets are sealed or named, and stand in nothing that is shown, logged or said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from specscope_server.alerts.channels import listing
from specscope_server.alerts.channels.from_file import read_channels, store_channels
from specscope_server.alerts.channels.opening import Vault, open_channel
from specscope_server.alerts.channels.secrets import References, Seal
from specscope_server.alerts.channels.stored import HIDDEN, Author, Wanted, change, create, find, switch
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Audit, Channel
from specscope_server.store.engine import write_transaction

KEY, NEW_KEY = "k" * 40, "n" * 40
SLACK = "https://hooks.slack.com/services/T0/B0/TOPSECRET"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ANN = Author("ann", 1_000)


def made(engine: Engine, vault: Vault, name: str = "oncall", kind: str = "slack", **settings: Any) -> None:
    with write_transaction(engine) as connection:
        create(connection, Wanted(name, kind, settings), ANN, vault)


def everything_stored(engine: Engine) -> bytes:
    with engine.connect() as connection:
        rows = [*connection.execute(select(Channel.__table__)), *connection.execute(select(Audit.__table__))]
    return repr(rows).encode()


def opened(engine: Engine, vault: Vault, name: str = "oncall") -> Any:
    with engine.connect() as connection:
        row = find(connection, name)
    return open_channel(row.name, row.kind, row.origin, row.config, row.secrets, vault).config


def test_a_sealed_secret_is_in_no_column_and_opens_again(store_engine: Engine) -> None:
    vault = Vault(Seal([KEY]))
    made(store_engine, vault, url=SLACK)
    assert b"TOPSECRET" not in everything_stored(store_engine)
    with store_engine.connect() as connection:
        assert listing.get_channel(connection, "oncall").settings["url"] == HIDDEN
    config = opened(store_engine, vault)
    assert config.url.get_secret_value() == SLACK
    assert "TOPSECRET" not in repr(config)


def test_without_a_key_secrets_must_be_named(sqlite_engine: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"no key to keep secrets.*SPECSCOPE_SECRET_KEY.*SPECSCOPE_ALERT_"):
        made(sqlite_engine, Vault(), url=SLACK)
    vault = Vault(api_references=References(environment={"SPECSCOPE_ALERT_SLACK": SLACK}))
    made(sqlite_engine, vault, url="${env:SPECSCOPE_ALERT_SLACK}")
    assert opened(sqlite_engine, vault).url.get_secret_value() == SLACK
    with sqlite_engine.connect() as connection:
        assert listing.get_channel(connection, "oncall").settings["url"] == "${env:SPECSCOPE_ALERT_SLACK}"


def test_keys_can_be_changed(sqlite_engine: Engine) -> None:
    made(sqlite_engine, Vault(Seal([KEY])), url=SLACK)
    assert opened(sqlite_engine, Vault(Seal([NEW_KEY, KEY]))).url.get_secret_value() == SLACK
    with pytest.raises(InvalidInput, match="cannot be opened with this secret_key"):
        opened(sqlite_engine, Vault(Seal([NEW_KEY])))
    with pytest.raises(InvalidInput, match="less than 32 characters"):
        Seal(["short"])


def test_secrets_cannot_be_moved_to_another_channel(sqlite_engine: Engine) -> None:
    seal = Seal([KEY])
    with pytest.raises(InvalidInput, match="another one"):
        seal.open("evil", seal.close("oncall", {"url": SLACK}))


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("${env:SPECSCOPE_TOKEN}", "begin with SPECSCOPE_ALERT_"),
        ("${env:SPECSCOPE_ALERT_MISSING}", "is not set"),
        ("file:/etc/passwd", "alerts_secrets_folder"),
        ("file:/no/such/file", "cannot be read"),
    ],
)
def test_by_rest_only_what_the_operator_opened_can_be_named(
    sqlite_engine: Engine, tmp_path: Path, reference: str, reason: str
) -> None:
    vault = Vault(api_references=References(folder=tmp_path))
    with pytest.raises(InvalidInput, match=reason):
        made(sqlite_engine, vault, url=reference)


def test_a_link_does_not_lead_out_of_the_folder(sqlite_engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (tmp_path / "secret").write_text(SLACK)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "fine").write_text(f"{SLACK}\n")
    vault = Vault(api_references=References(folder=folder))
    with pytest.raises(InvalidInput, match="alerts_secrets_folder"):
        made(sqlite_engine, vault, url=f"file:{folder}/link")
    with pytest.raises(InvalidInput, match="alerts_secrets_folder"):
        made(sqlite_engine, vault, url=f"file:{folder}/../secret")
    made(sqlite_engine, vault, url=f"file:{folder}/fine")
    assert opened(sqlite_engine, vault).url.get_secret_value() == SLACK


def test_changing_keeps_secrets_but_never_sends_them_elsewhere(sqlite_engine: Engine) -> None:
    vault = Vault(Seal([KEY]))
    made(sqlite_engine, vault, kind="webhook", url="https://a.example", secret=SIGNING)

    def changed(**settings: Any) -> None:
        with write_transaction(sqlite_engine) as connection:
            change(connection, Wanted("oncall", "webhook", settings), ANN, vault)

    changed(url="https://a.example", per_minute=5)
    assert opened(sqlite_engine, vault).secret.get_secret_value() == SIGNING
    with pytest.raises(InvalidInput, match="url changes where secrets go: give secret again"):
        changed(url="https://evil.example", secret=HIDDEN)
    changed(url="https://b.example", secret=SIGNING)
    changed(url="https://c.example", secret=None)
    assert opened(sqlite_engine, vault).secret is None


def test_only_the_operator_opens_private_addresses(sqlite_engine: Engine) -> None:
    settings = {"url": "http://127.0.0.1:1", "allow_private": True}
    with pytest.raises(InvalidInput, match="only the operator"):
        made(sqlite_engine, Vault(), kind="webhook", **settings)
    made(sqlite_engine, Vault(api_may_allow_private=True), kind="webhook", **settings)


def test_secrets_of_the_file_are_not_stored(sqlite_engine: Engine) -> None:
    vault = Vault()
    with write_transaction(sqlite_engine) as connection:
        store_channels(connection, read_channels([{"name": "s", "kind": "slack", "url": SLACK}]), ANN, vault)
    assert b"TOPSECRET" not in everything_stored(sqlite_engine)
    assert "TOPSECRET" not in repr(vault)
    assert opened(sqlite_engine, vault, "s").url.get_secret_value() == SLACK
    with pytest.raises(InvalidInput, match="same --alerts"):
        opened(sqlite_engine, Vault(), "s")


def test_every_problem_of_a_file_is_said_at_once_and_no_secret() -> None:
    entries = [
        {"name": "a", "kind": "slak", "url": SLACK},
        {"name": "b", "kind": "slack", "url": SLACK, "chanel": "x"},
        {"name": "c", "kind": "slack", "url": "ftp://TOPSECRET"},
        {"name": "d", "kind": "pagerduty"},
        {"kind": "slack", "url": SLACK},
        "text",
        {"name": "e", "kind": "webhook", "url": "https://user:TOPSECRET@x.example"},
        {"name": "f", "kind": "slack", "url": "${env:NOT_SET_ANYWHERE}"},
        {"name": "g", "kind": "template", "url": "https://x.example", "body": "{{ oops"},
    ]
    with pytest.raises(InvalidInput) as error:
        read_channels(entries)
    text = error.value.detail
    for part in (
        "channels[1]: there is no kind of channel 'slak'", "chanel: a slack has no such setting",
        "channels[3]", "routing_key: is missing", "channels[5]: it has no name", "channels[6]: is no map",
        "holds a user or password", "NOT_SET_ANYWHERE is not set", "is no Jinja template",
    ):  # fmt: skip
        assert part in text
    assert "TOPSECRET" not in text


def test_a_file_that_says_the_same_changes_nothing(sqlite_engine: Engine) -> None:
    wanted = read_channels([{"name": "s", "kind": "slack", "url": SLACK}])
    vault = Vault()
    for _ in range(2):
        with write_transaction(sqlite_engine) as connection:
            store_channels(connection, wanted, ANN, vault)
    with write_transaction(sqlite_engine) as connection:
        switch(connection, "s", False, ANN)
        store_channels(connection, wanted, ANN, vault)  # who turned it off meant it
        assert not find(connection, "s").enabled
        store_channels(connection, [], ANN, vault)
    with sqlite_engine.connect() as connection:
        actions = list(connection.scalars(select(Audit.action).order_by(Audit.id)))
    assert actions == ["channel.create", "channel.disable", "channel.remove"]
