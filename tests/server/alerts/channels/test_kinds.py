"""Each kind writes what its target takes, of every notification, and nothing in it can break out."""

from __future__ import annotations

import json
from email import message_from_bytes, policy
from typing import Any

import pytest
from tests.support.cards import NOW_MS, card, hostile, notification
from tests.support.receiver import Received
from tests.support.strict_receivers import (
    discord_body,
    discord_problem,
    pagerduty_problem,
    slack_problem,
)

from specscope_server.alerts.channels.contract import Context, HttpRequest, Mail
from specscope_server.alerts.channels.kinds import kind_of, kinds
from specscope_server.alerts.channels.notification import Notification
from specscope_server.kit.errors import InvalidInput

PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)
SETTINGS: dict[str, dict[str, Any]] = {
    "webhook": {"url": "https://hook.example/x"},
    "alertmanager": {"url": "https://am.example"},
    "alertmanager_webhook": {"url": "https://hook.example/am"},
    "slack": {"url": "https://hooks.slack.example/services/T/B/X", "mention": "<!here>"},
    "discord": {"url": "https://discord.example/api/webhooks/1/t"},
    "pagerduty": {"routing_key": "a" * 32, "images": True},
    "email": {"host": "mail.example", "sender": "specscope@example.org", "to": ["oncall@example.org"]},
    "template": {"url": "https://hook.example/t", "body": "{{ notification.alerts | tojson }}"},
}
MANY = notification(*(card(number) for number in range(120)))
CASES = {
    "one": notification(),
    "resolved": notification(card(status="resolved")),
    "hostile": notification(
        *(hostile(number) for number in range(12)), group_labels={"<!here>": "@everyone"}
    ),
    "many": MANY,
    "empty texts": notification(
        card(reason="", title="", labels={}, values=[], changes=[], links=[], runbook="")
    ),
}


def sent(kind: str, told: Notification, picture: bytes | None = None, **settings: Any) -> list[Received]:
    """Return the requests that a channel of this kind sends."""
    found = []
    for message in rendered(kind, told, picture, **settings):
        assert isinstance(message, HttpRequest)
        headers = {name.lower(): value for name, value in message.headers.items()}
        found.append(Received(f"{message.method} {message.url}", headers, message.body))
    return found


def rendered(kind: str, told: Notification, picture: bytes | None = None, **settings: Any) -> list[Any]:
    found = kind_of(kind)
    config = found.config.model_validate({**SETTINGS[kind], **settings})
    return found.render(config, told, Context("oncall", "msg_1", NOW_MS, picture=picture))


def mail(told: Notification, picture: bytes | None = None, **settings: Any) -> Any:
    (found,) = rendered("email", told, picture, **settings)
    assert isinstance(found, Mail)
    return message_from_bytes(found.message, policy=policy.default)


def test_kinds_are_found_by_folder() -> None:
    assert set(kinds()) == set(SETTINGS)
    with pytest.raises(InvalidInput, match=r"no kind of channel 'slak'.*slack"):
        kind_of("slak")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("picture", [None, PNG], ids=["plain", "picture"])
def test_slack_takes_it(case: str, picture: bytes | None) -> None:
    (request,) = sent("slack", CASES[case], picture)
    assert slack_problem(request) is None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("picture", [None, PNG], ids=["plain", "picture"])
def test_discord_takes_it(case: str, picture: bytes | None) -> None:
    (request,) = sent("discord", CASES[case], picture)
    assert discord_problem(request) is None
    assert discord_body(request)["allowed_mentions"] == {"parse": []}


@pytest.mark.parametrize("case", CASES)
def test_pagerduty_takes_it(case: str) -> None:
    requests = sent("pagerduty", CASES[case])
    assert len(requests) == len(CASES[case].alerts)
    assert [pagerduty_problem(request) for request in requests] == [None] * len(requests)


@pytest.mark.parametrize("kind", ["slack", "discord", "webhook", "email"])
def test_what_is_left_out_is_said(kind: str) -> None:
    if kind == "email":
        text = mail(MANY).get_body(("plain",)).get_content()
    else:
        text = sent(kind, MANY)[0].body.decode()
    shown = text.count("The draft is dead") if kind != "webhook" else len(json.loads(text)["data"]["alerts"])
    if kind == "webhook":
        assert json.loads(text)["data"]["truncated_alerts"] == 120 - shown
        assert len(text.encode()) <= 20_000
    else:
        assert "[cut]" in text
    assert 1 <= shown < 120 * 4


def test_a_long_text_is_cut_with_a_mark() -> None:
    long = notification(card(reason="x" * 50_000))
    for kind in ("slack", "discord", "pagerduty", "webhook"):
        assert "… [cut]" in sent(kind, long)[0].body.decode(), kind


def test_slack_cannot_be_made_to_mention_anybody_by_a_label() -> None:
    body = json.loads(sent("slack", CASES["hostile"])[0].body)
    assert "<!channel>" not in body["text"]
    marked = [block for block in body["blocks"] if block.get("text", {}).get("type") == "mrkdwn"]
    assert [block["text"]["text"] for block in marked] == ["<!here>"]  # the operator's own


def test_only_web_addresses_become_links() -> None:
    for kind in ("slack", "discord", "pagerduty"):
        links = json.dumps(json.loads(sent(kind, CASES["hostile"])[0].body).get("links", []))
        assert "javascript:" not in links
    page = mail(CASES["hostile"]).get_body(("html",)).get_content()
    assert 'href="javascript' not in page
    assert "<script>" not in page


def test_pagerduty_closes_the_incident_that_it_opened() -> None:
    fire, ack, end = (
        json.loads(sent("pagerduty", told)[0].body)
        for told in (
            notification(card()),
            notification(card(acked_by="ann"), cause="acknowledged"),
            notification(card(status="resolved")),
        )
    )
    assert [event["event_action"] for event in (fire, ack, end)] == ["trigger", "acknowledge", "resolve"]
    assert fire["dedup_key"] == ack["dedup_key"] == end["dedup_key"] == "a1"
    assert fire["payload"]["source"] == "gpu1:30000"
    assert fire["links"][0]["href"].startswith("https://specscope.example/acceptance")
    assert fire["images"][0]["src"].startswith("https://specscope.example/api/v1/figures/accept-length?")


def test_mail_has_text_page_and_picture() -> None:
    message = mail(notification(), PNG)
    assert message["Subject"].startswith("[Specscope] [FIRING critical] The draft is dead")
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == mail(notification(), PNG)["Message-ID"]
    assert "τ is 1.02" in message.get_body(("plain",)).get_content()
    assert "cid:panel@specscope" in message.get_body(("html",)).get_content()
    (picture,) = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert picture.get_content() == PNG


def test_a_title_cannot_add_headers_to_a_mail() -> None:
    message = mail(notification(hostile()))
    assert message["Bcc"] is None
    assert "\n" not in message["Subject"]


def test_alertmanager_webhook_is_version_4() -> None:
    told = notification(card(1), card(2, "resolved"))
    body = json.loads(sent("alertmanager_webhook", told, max_alerts=1)[0].body)
    assert (body["version"], body["status"], body["receiver"], body["truncatedAlerts"]) == (
        "4",
        "firing",
        "oncall",
        1,
    )
    assert body["alerts"][0]["endsAt"] == "0001-01-01T00:00:00Z"
    both = json.loads(sent("alertmanager_webhook", told)[0].body)
    assert both["commonLabels"] == {
        "alertname": "dead-draft", "severity": "critical", "source": "specscope", "model": "qwen",
    }  # fmt: skip
    assert both["alerts"][1]["endsAt"] == "2026-03-01T11:59:59.000Z"


def test_alertmanager_is_told_of_an_end_that_is_not_before_the_beginning() -> None:
    early = card(status="resolved", starts_ms=NOW_MS - 10, ends_ms=NOW_MS - 20)
    (alert,) = json.loads(sent("alertmanager", notification(early))[0].body)
    assert alert["startsAt"] < alert["endsAt"] <= "2026-03-01T12:00:00.000Z"


def test_a_password_is_never_sent_in_the_clear() -> None:
    with pytest.raises(ValueError, match="only sent encrypted"):
        rendered("email", notification(), user="u", password="p", security="none")


def test_pagerduty_acknowledges_only_what_was_taken() -> None:
    taken, open_ = card(1, acked_by="ann"), card(2)

    def actions(cause: str) -> list[tuple[str, str]]:
        events = [json.loads(got.body) for got in sent("pagerduty", notification(taken, open_, cause=cause))]
        return [(event["dedup_key"], event["event_action"]) for event in events]

    assert actions("acknowledged") == [("a1", "acknowledge")]
    assert actions("new") == [("a1", "trigger"), ("a1", "acknowledge"), ("a2", "trigger")]
