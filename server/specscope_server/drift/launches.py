"""A launch as a mark on a time axis."""

from __future__ import annotations

from specscope_server.acceptance.schemas import LaunchMarker
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.versions import version_text
from specscope_server.models import Launch


def marker(launch: Launch) -> LaunchMarker:
    """Return when a launch began, with its depth and version."""
    version = version_text(launch.engine_version, launch.version_source)
    depth = f"K={launch.num_steps} D={launch.num_draft_tokens}" if launch.num_draft_tokens else "launch"
    return LaunchMarker(
        time=to_iso(launch.first_seen_ms), launch_id=launch.id,
        label=" · ".join(filter(None, (depth, version))), reason=launch.reason,
    )  # fmt: skip
