"""Puts a plan together: targets, jobs and discoveries, one runner for all of them."""

from __future__ import annotations

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.observations import Sink
from specscope_collectors.plan import CollectPlan
from specscope_collectors.runner import Runner


def compose(plan: CollectPlan, sink: Sink, clock: Clock = system_clock) -> Runner:
    """Return a runner, not yet started, that collects what ``plan`` says and follows its file."""
    return Runner([each.target for each in plan.targets], sink, plan.options, clock)
