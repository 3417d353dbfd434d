"""Rules over REST: list, make, change, switch, check, replay. Changes need the scope ``admin``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from specscope_server.alerts.rules import examples, service
from specscope_server.alerts.rules.schemas import (
    BacktestAnswer,
    BacktestQuestion,
    ChangedRule,
    KindList,
    NewRule,
    RuleItem,
    RuleList,
    SignalList,
    Validation,
    VersionList,
)
from specscope_server.kit.web.actor import actor_of
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.state import Db, State

router = APIRouter(tags=["alerts"])

RuleName = Annotated[str, Path(max_length=80, description="Name of a rule")]
KnownVersion = Annotated[int, Query(alias="version", ge=0, description="The version that you read")]
Search = Annotated[str | None, Query(max_length=100, description="Part of a name")]


@router.get(
    "/alerts/rules", summary="List rules", response_model=RuleList,
    responses=answers(examples.LIST),
)  # fmt: skip
def list_rules(db: Db) -> RuleList:
    """Every rule by name: of the pack, of the alerts' file, and made here."""
    return service.list_rules(db)


@router.post(
    "/alerts/rules", summary="Make a rule", response_model=RuleItem,
    responses=answers(examples.ITEM, 409, 422),
)  # fmt: skip
def create_rule(request: Request, db: Db, state: State, new: NewRule) -> RuleItem:
    """A new rule, in the words of a file. It is evaluated from the next round on."""
    db.rollback()  # ends the read, so that on SQLite the write that follows is not behind it
    service.create(state.engine, new.rule, actor_of(request), state.clock())
    return service.get_rule(db, str(new.rule["name"]))


@router.post(
    "/alerts/rules/validate", summary="Check a rule", response_model=Validation,
    responses=answers(examples.VALIDATION, 422),
)  # fmt: skip
def validate_rule(db: Db, state: State, new: NewRule) -> Validation:
    """Everything that is wrong with a rule; if nothing is, what it says at this moment. Stores nothing."""
    return service.validate(db, state, new.rule)


@router.post(
    "/alerts/rules/backtest", summary="Replay a rule over history", response_model=BacktestAnswer,
    responses=answers(examples.BACKTEST, 404, 422),
)  # fmt: skip
def backtest_rule(db: Db, state: State, asked: BacktestQuestion) -> BacktestAnswer:
    """When the rule would have fired, had it been on: by the same conditions and states. Stores nothing.

    It judges at most 1,500 instants: of a week one in about 7 minutes.
    """
    return service.replay(db, state, asked)


@router.get(
    "/alerts/rules/{name}", summary="Show a rule", response_model=RuleItem,
    responses=answers(examples.ITEM, 404, 422),
)  # fmt: skip
def show_rule(db: Db, name: RuleName) -> RuleItem:
    """One rule as it is in force."""
    return service.get_rule(db, name)


@router.put(
    "/alerts/rules/{name}", summary="Change a rule", response_model=RuleItem,
    responses=answers(examples.ITEM, 404, 409, 422),
)  # fmt: skip
def change_rule(request: Request, db: Db, state: State, name: RuleName, changed: ChangedRule) -> RuleItem:
    """Write its next version. A rule of the pack stays changed until it is reset; one of the file is changed
    there.
    """
    db.rollback()
    service.change(state.engine, name, changed.version, changed.rule, actor_of(request), state.clock())
    return service.get_rule(db, name)


@router.delete(
    "/alerts/rules/{name}", summary="Remove a rule", response_model=RuleList,
    responses=answers(examples.LIST, 404, 409, 422),
)  # fmt: skip
def delete_rule(request: Request, db: Db, state: State, name: RuleName, version: KnownVersion) -> RuleList:
    """Its alerts end; its versions stay. Rules of the pack are disabled instead. Returns the rules that are
    left.
    """
    db.rollback()
    service.delete(state.engine, name, version, actor_of(request), state.clock())
    return service.list_rules(db)


@router.post(
    "/alerts/rules/{name}/enable", summary="Turn a rule on", response_model=RuleItem,
    responses=answers(examples.ITEM, 404, 422),
)  # fmt: skip
def enable_rule(request: Request, db: Db, state: State, name: RuleName) -> RuleItem:
    """It is evaluated from the next round on."""
    db.rollback()
    service.switch(state.engine, name, actor_of(request), state.clock(), enabled=True)
    return service.get_rule(db, name)


@router.post(
    "/alerts/rules/{name}/disable", summary="Turn a rule off", response_model=RuleItem,
    responses=answers(examples.ITEM, 404, 422),
)  # fmt: skip
def disable_rule(request: Request, db: Db, state: State, name: RuleName) -> RuleItem:
    """Its alerts end with the next round."""
    db.rollback()
    service.switch(state.engine, name, actor_of(request), state.clock(), enabled=False)
    return service.get_rule(db, name)


@router.post(
    "/alerts/rules/{name}/reset", summary="Take back changes to a rule of the pack", response_model=RuleItem,
    responses=answers(examples.ITEM, 404, 409, 422),
)  # fmt: skip
def reset_rule(
    request: Request, db: Db, state: State, name: RuleName, version: KnownVersion
) -> RuleItem:  # fmt: skip
    """It is as shipped again, and follows upgrades."""
    db.rollback()
    service.reset(state.engine, name, version, actor_of(request), state.clock())
    return service.get_rule(db, name)


@router.get(
    "/alerts/rules/{name}/versions", summary="List versions of a rule", response_model=VersionList,
    responses=answers(examples.VERSIONS, 404, 422),
)  # fmt: skip
def list_versions(db: Db, name: RuleName) -> VersionList:
    """What it was, who changed it, and when; the newest first. Also of rules that were removed."""
    return service.versions(db, name)


@router.get(
    "/alerts/signals", summary="List what rules can watch", response_model=SignalList,
    responses=answers(examples.SIGNALS, 422),
)  # fmt: skip
def list_signals(search: Search = None) -> SignalList:
    """Every signal with unit, labels and what its sample counts; `search` narrows by name."""
    return service.list_signals(search)


@router.get(
    "/alerts/conditions", summary="List kinds of conditions", response_model=KindList,
    responses=answers(examples.KINDS),
)  # fmt: skip
def list_kinds() -> KindList:
    """Each kind with its fields."""
    return service.list_kinds()
