"""What would be collected is shown so that nothing from outside moves the cursor."""

from __future__ import annotations

from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Target
from specscope_collectors.plan import Watching
from specscope_collectors.preview import MAX_SHOWN, Preview, preview_lines


def test_labels_from_outside_are_short_and_move_no_cursor() -> None:
    labels = {"rack": "a7", "evil": "\x1b[2J\nfake", "long": "x" * 10_000}
    watching = Watching(
        target=Target(name="gpu1", base_url="http://gpu1:1"),
        options=CollectorOptions(),
        labels=labels,
        origin="f",
    )
    shown = "\n".join(preview_lines(Preview(targets=(watching,), jobs=(), looks=())))
    assert "rack=a7" in shown
    assert r"evil=\x1b[2J\nfake" in shown
    assert "\x1b" not in shown
    assert f"long={'x' * (MAX_SHOWN - 1)}…" in shown
