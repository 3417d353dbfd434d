"""Each kind holds as many alerts in one message as it says: texts are cut, alerts never."""

from __future__ import annotations

import json
from email import message_from_bytes, policy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.alerts.channels.test_kinds import SETTINGS, rendered, sent
from tests.support.cards import NOW_MS, card, hostile, notification
from tests.support.strict_receivers import discord_body, discord_problem, slack_problem

from specscope_server.alerts.channels.kinds import kind_of, kinds
from specscope_server.alerts.channels.notification import (
    Card,
    CardChange,
    CardFigure,
    CardLink,
    CardValue,
    Notification,
)

TEXTS = st.sampled_from(["\x00", "\"", "\\", "𝕬", "<", "é", "\u202e", "\n", "@", "a b"]).flatmap(
    lambda char: st.sampled_from([0, 1, 30, 400, 2_500]).map(lambda count: char * count)
)  # fmt: skip
LABELS = st.dictionaries(TEXTS.map(lambda text: text[:100]), TEXTS, max_size=24)
CARDS = st.builds(
    card, st.integers(0, 10**6), st.sampled_from(["firing", "resolved"]), title=TEXTS, reason=TEXTS,
    labels=LABELS, annotations=LABELS, runbook=TEXTS, acked_by=TEXTS,
    values=st.lists(st.builds(CardValue, TEXTS, st.floats(allow_nan=False), TEXTS), max_size=4),
    changes=st.lists(st.builds(CardChange, st.just(NOW_MS), TEXTS, TEXTS), max_size=4),
    links=st.lists(st.builds(CardLink, TEXTS, TEXTS.map("https://x/{}".format)), max_size=4),
    figure=st.builds(CardFigure, TEXTS, TEXTS, st.just(NOW_MS), st.just(NOW_MS)),
)  # fmt: skip
GROUP = st.dictionaries(TEXTS.map(lambda text: text[:100]), TEXTS, max_size=20)


@st.composite
def full(draw: st.DrawFn, kind: str) -> Notification:
    """Draw a notification as full as the kind takes it."""
    count = kind_of(kind).most_cards
    drawn = draw(st.lists(CARDS, min_size=1, max_size=3))
    cards = [
        card_with_id(drawn[place % len(drawn)], place) for place in range(count)
    ]  # a few kinds of cards, many times
    text = draw(TEXTS)[:316]
    return notification(
        *cards, group_labels=draw(GROUP), group_key=text, truncated_alerts=10**6, part=9, parts=99
    )


def card_with_id(made: Card, place: int) -> Card:
    return card(
        place, made.status, **{
            name: getattr(made, name)
            for name in ("title", "reason", "labels", "annotations", "runbook", "acked_by", "values",
                         "changes", "links", "figure")
        },
        alert_id=f"{place:016x}-{NOW_MS:x}",
    )  # fmt: skip


@settings(deadline=None, max_examples=12)
@given(full("webhook"))
def test_a_webhook_holds_what_it_says(told: Notification) -> None:
    body = sent("webhook", told)[0].body
    assert len(body) <= 20_000
    assert [alert["alert_id"] for alert in json.loads(body)["data"]["alerts"]] == [
        each.alert_id for each in told.alerts
    ]


@settings(deadline=None, max_examples=12)
@given(full("slack"))
def test_slack_holds_what_it_says(told: Notification) -> None:
    [request] = sent("slack", told)
    assert slack_problem(request) is None
    texts = [block["text"]["text"] for block in json.loads(request.body)["blocks"] if "text" in block]
    assert sum(text.startswith(("FIRING", "RESOLVED")) for text in texts) == len(told.alerts)


@settings(deadline=None, max_examples=12)
@given(full("discord"))
def test_discord_holds_what_it_says(told: Notification) -> None:
    [request] = sent("discord", told)
    assert discord_problem(request) is None
    assert len(discord_body(request)["embeds"]) == len(told.alerts)


@pytest.mark.parametrize("kind", ["slack", "discord", "email"])
def test_which_one_it_is_is_said_however_many_there_are(kind: str) -> None:
    labels = [{"server": f"gpu{place}:30000", "rule": "dead-draft"} for place in range(10)]
    cards = [
        card(place, labels=each, reason="long " * 400, annotations={"advice": "x" * 500})
        for place, each in enumerate(labels)
    ]
    [message] = rendered(kind, notification(*cards))
    text = message.message if kind == "email" else message.body
    if kind == "email":
        part = message_from_bytes(text, policy=policy.default).get_body(("plain",))
        assert part is not None
        text = part.get_content().encode()
    assert all(f"server={each['server']}".encode() in text.replace(b"\\\\", b"") for each in labels)


def test_settings_are_those_of_all_kinds() -> None:
    assert set(SETTINGS) == set(kinds())
    assert all(1 <= kind.most_cards <= 100 for kind in kinds().values())


def test_hostile_cards_fit() -> None:
    told = notification(*(hostile(place) for place in range(10)))
    assert len(json.loads(sent("webhook", told)[0].body)["data"]["alerts"]) == 10
    assert len(discord_body(sent("discord", told)[0])["embeds"]) == 10
