"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

_REFERENCE = {
    "id": 1,
    "name": "training",
    "version": 1,
    "kind": "slots",
    "model": "org/small-target",
    "hidden_size": 96,
    "boundaries": [2, 6, 9],
    "boundary_rule": "told",
    "boundary_source": "told",
    "tool": "speculators 0.4.0",
    "fingerprint": "training",
    "requests": 96,
    "rows": 3000,
    "made": "2026-02-25T06:13:20.000Z",
    "answers_only": False,
}
_BOUNDARIES_REFERENCE = {
    "id": 2,
    "name": "calibration",
    "version": 1,
    "kind": "boundaries",
    "model": "org/small-target",
    "hidden_size": 96,
    "boundaries": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    "boundary_rule": "told",
    "boundary_source": "told",
    "tool": "speculators 0.4.0",
    "fingerprint": "calibration",
    "requests": 96,
    "rows": 3000,
    "made": "2026-02-25T06:13:20.000Z",
    "answers_only": False,
}

DRIFT: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "is_demo": False,
    "launch": {
        "time": "2026-03-01T12:00:00.000Z",
        "launch_id": 1,
        "label": "K=3 D=4 · 0.5.15",
        "reason": "first seen",
    },
    "launches": [
        {
            "time": "2026-03-01T12:00:00.000Z",
            "launch_id": 1,
            "label": "K=3 D=4 · 0.5.15",
            "reason": "first seen",
        }
    ],
    "verdict": {
        "state": "bad",
        "headline": "All slots are one layer too deep: 3, 7 and 10, trained on 2, 6 and 9",
        "reasons": [
            "serving slot 0 is boundary 3, serving slot 1 is boundary 7, serving slot "
            "2 is boundary 10: capture is boundaries 3, 7 and 10, trained 2, 6 and 9 "
            "(as ids of layers whose output is taken: capture [2, 6, 9], trained [1, "
            "5, 8])",
            "Slot 0 is boundary 3, one layer too deep; trained on boundary 2",
            "Slot 1 is boundary 7, one layer too deep; trained on boundary 6",
            "Slot 2 is boundary 10, one layer too deep; trained on boundary 9",
        ],
    },
    "resolution": "boundaries",
    "resolution_note": "Every boundary of the target is known, so an off-by-one is named.",
    "reference": _REFERENCE,
    "boundaries_reference": _BOUNDARIES_REFERENCE,
    "phases": ["prefill", "verify_accepted", "verify_rejected"],
    "slots": [
        {
            "slot": 0,
            "state": "wrong",
            "fault": "wrong_boundary",
            "headline": "Slot 0 is boundary 3, one layer too deep; trained on boundary 2",
            "trained_boundary": 2,
            "captured_boundary": 2,
            "measured_boundary": 3,
            "evidence": [
                "the engine says that it captures boundary 2, and hands on boundary 3",
                "prefill: boundary 3, 3 of 3 windows, 256 rows of 32 requests in the newest",
                "verification, accepted: boundary 3, 3 of 3 windows, 256 rows of 32 requests in the newest",
                "verification, rejected: boundary 3, 3 of 3 windows, 256 rows of 32 requests in the newest",
            ],
        }
    ],
    "cells": [
        {
            "slot": 0,
            "phase": "prefill",
            "state": "wrong",
            "fault": "wrong_boundary",
            "words": "is boundary 3, one layer too deep",
            "trained_boundary": 2,
            "captured_boundary": 2,
            "rows": 256,
            "requests": 32,
            "common_rows": 226,
            "row_class": "other",
            "vcos": {
                "boundary": 3,
                "place": "boundary 3",
                "distance": 0.03095,
                "claimed_distance": 0.08326,
                "runner_up": 4,
                "runner_up_ratio": 2.69,
            },
            "dnll": {
                "boundary": 3,
                "place": "boundary 3",
                "distance": 0.0,
                "claimed_distance": 0.0389,
                "runner_up": 4,
                "runner_up_ratio": 3.735,
            },
            "gross_norm": 0.1619,
            "gross_norm_limit": 0.2,
            "gross_direction": 0.06961,
            "gross_direction_limit": 0.35,
            "votes_for": 3,
            "votes": 3,
            "windows": [
                {
                    "from": "2026-03-01T12:50:00.000Z",
                    "to": "2026-03-01T13:00:00.000Z",
                    "launch_id": 1,
                    "rows": 256,
                    "requests": 32,
                    "common_rows": 226,
                    "common_ids": 32,
                    "is_full": True,
                    "nearest_vcos": 3,
                    "nearest_dnll": 3,
                    "own_variances": False,
                    "names": "boundary 3",
                    "gross_norm": 0.1619,
                    "gross_direction": 0.06961,
                    "fault": "wrong_boundary",
                    "missing": [],
                }
            ],
            "invariants": [
                {
                    "kind": "nonfinite_rows",
                    "title": "Rows that are not finite",
                    "passed": True,
                    "count": 0,
                    "looked_at": 768,
                    "message": "none",
                }
            ],
            "missing": [],
        }
    ],
    "curve": [
        {
            "slot": 0,
            "phase": "prefill",
            "boundary": 2,
            "place": "boundary 2",
            "vcos": 0.08326,
            "dnll": 0.0389,
            "norm": 0.1648,
            "is_trained": True,
            "is_captured": True,
        },
        {
            "slot": 0,
            "phase": "prefill",
            "boundary": 3,
            "place": "boundary 3",
            "vcos": 0.03095,
            "dnll": 0.0,
            "norm": 0.004236,
            "is_trained": False,
            "is_captured": False,
        },
    ],
    "assignment": {
        "speaks": True,
        "votes": 1.0,
        "words": "serving slot 0 is boundary 3, serving slot 1 is boundary 7, serving slot "
        "2 is boundary 10: capture is boundaries 3, 7 and 10, trained 2, 6 and 9 "
        "(as ids of layers whose output is taken: capture [2, 6, 9], trained [1, "
        "5, 8])",
        "pairs": [
            {
                "slot": 0,
                "training_slot": None,
                "boundary": 3,
                "place": "boundary 3",
                "votes": 1.0,
                "margin": 1.354,
            }
        ],
        "resampled": "6 windows",
        "phase": "prefill",
        "rounds": 200,
    },
    "findings": [
        {
            "kind": "claims",
            "title": "Boundaries captured and trained",
            "passed": True,
            "count": 0,
            "looked_at": 3,
            "message": "the engine captures 2, 6 and 9, trained on 2, 6 and 9",
        }
    ],
    "false_alarms": {
        "budget_per_month": 1.0,
        "expected_per_month": 0.0025,
        "windows_per_month": 4320.0,
        "words": "An alarm needs the same fault in 2 of 3 windows, or in two phases at once. The verdict was "
        "false in 0 of 20,400 measured windows, so one errs in at most 0.015% (95 % bound). If windows err "
        "independently, that is at most 0.0025 false alarms a month here. The measured windows were of 17 "
        "kinds of text: up to 16% of other kinds might still mislead window after window (95 % bound), where "
        "2 of 3 would not help.",
    },
    "missing": [],
    "unusable": [],
}
TREND: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "is_demo": False,
    "reference": _REFERENCE,
    "points": [
        {
            "time": "2026-03-01T13:00:00.000Z",
            "from": "2026-03-01T12:50:00.000Z",
            "launch_id": 1,
            "slot": 2,
            "phase": "verify_rejected",
            "rows": 256,
            "requests": 32,
            "state": "suspected",
            "fault": "wrong_boundary",
            "nearest": 10,
            "w1": 0.06014,
            "psi": 0.334,
            "ks": 0.2119,
            "channel_rms": 0.1035,
            "mean_direction": 0.06657,
            "vcos": 0.09542,
            "claimed_excess": 0.05397,
            "q05": 4.879,
            "q25": 4.953,
            "q50": 5.034,
            "q75": 5.11,
            "q95": 5.241,
            "accept_length": 2.2,
        }
    ],
    "floors": [{"slot": 0, "phase": "prefill", "statistic": "w1", "value": 0.01181, "pairs": 5}],
    "launches": [
        {
            "time": "2026-03-01T12:00:00.000Z",
            "launch_id": 1,
            "label": "K=3 D=4 · 0.5.15",
            "reason": "first seen",
        }
    ],
    "is_thinned": False,
    "note": "These distances follow the text that is served as much as a wrong layer: they are shown, "
    "never alarmed on. Below the noise floor (the 95 % point between neighbouring windows) "
    "nothing can be seen.",
}
PROFILES: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "is_demo": False,
    "launch": {
        "time": "2026-03-01T12:00:00.000Z",
        "launch_id": 1,
        "label": "K=3 D=4 · 0.5.15",
        "reason": "first seen",
    },
    "reference": _REFERENCE,
    "boundaries_reference": _BOUNDARIES_REFERENCE,
    "profiles": [
        {
            "side": "serving",
            "slot": 0,
            "boundary": 2,
            "phase": "prefill",
            "row_class": "other",
            "profiles": 1,
            "rows": 256,
            "requests": 32,
            "hidden_size": 96,
            "mean_ln_norm": 4.605,
            "sd_ln_norm": 0.08454,
            "quantiles": {
                "q01": 4.462,
                "q05": 4.486,
                "q25": 4.544,
                "q50": 4.6,
                "q75": 4.661,
                "q95": 4.761,
                "q99": 4.844,
            },
            "mean_resultant": 0.584,
            "common_ids": 32,
            "common_rows": 226,
            "top_channels": [78, 49, 70, 86],
            "top_share": 0.1114,
            "invariants": {
                "zero_rows": 0,
                "nonfinite_rows": 0,
                "equal_id_pairs": 209,
                "equal_id_pairs_identical": 0,
                "duplicate_rows": 0,
            },
        }
    ],
    "rows": [
        {
            "side": "serving",
            "time": "2026-03-01T12:10:00.000Z",
            "phase": "prefill",
            "slot": 0,
            "position": 7,
            "norm": 84.2,
            "first_values": [0.1, -0.2, 0.3, 0.4, 0.5],
            "token_id": None,
            "row_class": None,
        },
        {
            "side": "training",
            "time": "2026-02-25T06:13:20.000Z",
            "phase": "prefill",
            "slot": 0,
            "position": 9,
            "norm": 83.1,
            "first_values": [0.2, -0.1, 0.3, 0.4, 0.6],
            "token_id": 198,
            "row_class": "other",
        },
    ],
    "capture": {"boundaries": [3, 7, 10], "layers": [3, 7, 10], "hidden_size": 96},
}
