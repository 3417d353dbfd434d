"""The rules that are shipped: ``pack/*.yaml``, one rule a file, on by default."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from specscope_server.alerts.rules.files import read_rules
from specscope_server.alerts.rules.schema import Rule


@cache
def pack() -> dict[str, Rule]:
    """Return name → rule, by name; each file is named as its rule."""
    found: dict[str, Rule] = {}
    for entry in sorted(files(f"{__package__}.pack").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            [rule] = read_rules(entry.read_bytes(), entry.name).rules
            if f"{rule.name}.yaml" != entry.name:
                raise RuntimeError(f"the rule in {entry.name} is called {rule.name}")
            found[rule.name] = rule
    return found
