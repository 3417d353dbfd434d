"""How phases are drawn: one colour each, and a hatch where colour alone would mislead."""

from __future__ import annotations

from typing import Any

from specscope_server.kit.figures_theme import Theme
from specscope_server.timing.phases import Phase

HATCHES = {
    Phase.UNATTRIBUTED: "/",
    Phase.VERIFY_PREPARE: ".",
    Phase.ROUND: "x",
    Phase.PREFILL_OR_EXTEND: "x",
    Phase.WARM_UP: "-",
}
"""Phase → plotly's pattern. Unattributed is always a grey hatch."""


def colour(phase: Phase | str, theme: Theme) -> str:
    """Return the colour of a phase."""
    colours = {
        Phase.DRAFT: theme.draft,
        Phase.VERIFY_PREPARE: theme.verify,
        Phase.VERIFY: theme.verify,
        Phase.SAMPLING: theme.sampling,
        Phase.DRAFT_EXTEND: theme.draft_extend,
        Phase.ROUND: theme.verify,
        Phase.DECODE: theme.accent,
        Phase.HOST: theme.host,
        Phase.PREFILL: theme.reference,
        Phase.PREFILL_OR_EXTEND: theme.reference,
        Phase.IDLE: theme.idle,
    }
    return colours.get(Phase(phase), theme.host)


def bar_marker(phase: Phase | str, theme: Theme) -> dict[str, Any]:
    """Return the marker of a bar: filled, or hatched in the phase's colour."""
    known = Phase(phase)
    tint = colour(known, theme)
    shape = HATCHES.get(known, "")
    if not shape:
        return {"color": tint, "line": {"width": 0}}
    return {
        "color": tint,
        "line": {"width": 0},
        "pattern": {
            "shape": shape,
            "fgcolor": tint,
            "bgcolor": theme.paper,
            "fillmode": "replace",
            "size": 6,
        },
    }
