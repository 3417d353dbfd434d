"""Templates: they write what is asked, and can neither reach out nor hold this process up."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.support.cards import NOW_MS, hostile, notification

from specscope_server.alerts.channels.contract import Context, HttpRequest
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.template.kind import Config, render
from specscope_server.kit.errors import InvalidInput

JSON = '{"text": {{ headline | tojson }}, "alerts": [{% for a in notification.alerts %}{{ a.title | tojson }}'
JSON += "{{ ',' if not loop.last }}{% endfor %}]}"


def body(template: str, told: Notification | None = None, **settings: Any) -> bytes:
    config = Config.model_validate({"url": "https://hook.example/", "body": template, **settings})
    (request,) = render(config, told or notification(), Context("oncall", "msg_1", NOW_MS))
    assert isinstance(request, HttpRequest)
    return request.body


def test_json_of_hostile_texts_is_json() -> None:
    written = json.loads(body(JSON, notification(hostile())))
    assert written["alerts"] == [hostile().title]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"does not write JSON.*tojson"):
        body("{{ headline }}")
    assert body("{{ channel }} é", content_type="text/plain") == "oncall é".encode()


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.environ }}",
        "{{ notification.alerts.append(1) }}",
        "{{ notification.nothing }}",
        "{% include '/etc/passwd' %}",
        "{{ 1 / 0 }}",
    ],
)
def test_it_cannot_reach_out(template: str) -> None:
    with pytest.raises(InvalidInput, match="the template"):
        body(template, content_type="text/plain")


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ 9 ** (9 ** 9) }}",
        "{% for a in range(99999) %}{{ headline }}{% endfor %}",
    ],
    ids=["time", "memory", "format", "power", "output"],
)
def test_it_cannot_take_all_time_or_memory(template: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidInput, match="the template"):
        body(template, content_type="text/plain")
    assert time.monotonic() - began < 60  # left alone, hours


def test_what_is_no_template_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="is no Jinja template"):
        body("{% for %}")
