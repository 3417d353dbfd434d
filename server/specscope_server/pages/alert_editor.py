"""The editor of a rule: its text is checked, tried on history and stored; answers are pieces of the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import yaml
from sqlalchemy.orm import Session

from specscope_server.alerts.preview import preview_figure
from specscope_server.alerts.rules import service
from specscope_server.alerts.rules.evaluate import watched
from specscope_server.alerts.rules.problems import read_rule
from specscope_server.alerts.rules.schemas import (
    EXAMPLE_RULE,
    BacktestAnswer,
    BacktestQuestion,
    RuleItem,
    Validation,
)
from specscope_server.kit.errors import Conflict, InvalidInput, NotFound
from specscope_server.kit.figures import epoch_ms
from specscope_server.kit.figures_theme import LIGHT, THEMES
from specscope_server.kit.web.formats import dump_json
from specscope_server.kit.web.state import AppState
from specscope_server.kit.yaml_text import Document, YamlError, read_yaml

MAX_TEXT = 50_000


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the editor sends."""

    action: Literal["check", "backtest", "save"]
    text: str
    name: str = ""
    """Of the rule that is edited; '' = a new one."""
    version: int = 0
    from_: str = msgspec.field(name="from", default="now-7d")
    to: str = "now"
    server: str = ""
    theme: str = "light"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is shown below the text."""

    problems: list[tuple[int, str, str]] = field(default_factory=list)
    """(line or 0, field, reason)."""
    checked: Validation | None = None
    backtest: BacktestAnswer | None = None
    figure: str = ""
    """The signal over the range, as plotly takes it (JSON); '' = there is none."""
    saved: RuleItem | None = None
    failure: str = ""


def rule_text(rule: dict[str, Any] | None = None) -> str:
    """Return a rule as YAML, as it would stand in a file; without one, an example to begin with."""
    shown = EXAMPLE_RULE if rule is None else rule
    return str(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100))


def answer(session: Session, state: AppState, asked: Asked, actor: str) -> Answer:
    """Return what becomes of the text. Never raises for what somebody wrote."""
    if len(asked.text) > MAX_TEXT:
        return Answer(failure=f"the text has {len(asked.text):,} characters; a rule has at most {MAX_TEXT:,}")
    try:
        document = read_yaml(asked.text)
    except YamlError as error:
        return Answer(failure=str(error))
    checked = service.validate(session, state, document.value)
    if not checked.is_valid:
        return Answer(problems=_with_lines(checked, document))
    try:
        return _act(session, state, asked, document.value, checked, actor)
    except (InvalidInput, NotFound, Conflict) as error:
        return Answer(checked=checked, failure=error.detail)


def _act(
    session: Session, state: AppState, asked: Asked, body: Any, checked: Validation, actor: str
) -> Answer:
    if asked.action == "backtest":
        question = BacktestQuestion.model_validate(
            {"rule": body, "from": asked.from_, "to": asked.to, "server": asked.server or None}
        )
        tried = service.replay(session, state, question)
        return Answer(checked=checked, backtest=tried, figure=_figure(session, state, asked, body, tried))
    if asked.action == "save":
        session.rollback()  # ends the read, so that on SQLite the write that follows is not behind it
        if asked.name:
            service.change(state.engine, asked.name, asked.version, body, actor, state.clock())
        else:
            service.create(state.engine, body, actor, state.clock())
        return Answer(checked=checked, saved=service.get_rule(session, str(body["name"])))
    return Answer(checked=checked)


def _figure(session: Session, state: AppState, asked: Asked, body: Any, tried: BacktestAnswer) -> str:
    """Return what the rule watched in the range that was tried, drawn."""
    servers = [each for each in watched(session) if asked.server in ("", each.name)]
    span = (round(epoch_ms(tried.from_)), round(epoch_ms(tried.to)))
    theme = THEMES.get(asked.theme, LIGHT)
    drawn = preview_figure(session, state, read_rule(body), servers, span, tried.fires, theme)
    return "" if drawn is None else dump_json(drawn).decode()


def _with_lines(checked: Validation, document: Document) -> list[tuple[int, str, str]]:
    return [(_line(document, each.field), each.field, each.reason) for each in checked.problems]


def _line(document: Document, name: str) -> int:
    """Return the line of a field, or of what it stands in; 0 = the rule as a whole."""
    path = tuple(int(part) if part.isdigit() else part for part in name.split(".")) if name else ()
    return document.line(path) if path else 0
