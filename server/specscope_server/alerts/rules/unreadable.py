"""A rule that another version wrote and nobody can read here: what of it still can be told.

Its alerts must not end because of that, and what they mute stays muted. So all that is known of it is kept,
but the condition, which is never evaluated.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from specscope_server.alerts.rules.schema import Rule

NOTHING = {"kind": "event", "events": ["nothing"]}
"""In the place of the condition."""


def readable_part(name: str, body: Any) -> Rule:
    """Return a rule of those fields that can be read. Never raises."""
    known = {field.alias or key for key, field in Rule.model_fields.items()}
    told = {key: value for key, value in body.items() if key in known} if isinstance(body, dict) else {}
    least = {"name": name, "title": name, "condition": NOTHING}
    wanted = {**least, **told, "name": name, "condition": NOTHING}
    try:
        return Rule.model_validate(wanted)
    except ValidationError as error:
        bad = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
    good = {key: value for key, value in wanted.items() if key not in bad}
    try:
        return Rule.model_validate({**least, **good})
    except ValidationError:
        return Rule.model_construct(
            **Rule.model_validate({**least, "name": "unreadable"}).__dict__ | {"name": name}
        )
