"""Class of the target and layers of the draft, kept beside a launch's configuration.

They are no part of what tells launches apart: the same launch is not taken for another one because a file
could be read this time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from specscope_collectors.fetch import Answer
from specscope_collectors.json_body import WrongBodyError, decode_json
from specscope_collectors.observations import Launch
from specscope_collectors.sources.sglang_info.checkpoint_files import classes_of, facts_of

MODEL_PATH = "/model_info"
MODEL, DRAFT = "specscope_model", "specscope_draft"
"""Keys in `Launch.config`: `{source, architectures, num_hidden_layers, hidden_size,
eagle_aux_hidden_state_layer_ids}`, as far as they are known."""


def with_model(launch: Launch, answer: Answer) -> Launch:
    """Return a launch with what `/model_info` and files of this host say of its target and draft."""
    model = facts_of(launch.model) | told_by(answer)
    draft = facts_of(launch.speculative.draft_model) if launch.speculative.draft_model else {}
    more = {key: value for key, value in ((MODEL, model), (DRAFT, draft)) if value}
    return msgspec.structs.replace(launch, config={**launch.config, **more}) if more else launch


def told_by(answer: Answer) -> dict[str, Any]:
    """Return the class that `/model_info` names (0.5.8 and later); the file's other facts stay."""
    if not answer.ok:
        return {}
    try:
        body = decode_json(answer.body, WrongBodyError)
    except WrongBodyError:
        return {}
    found = classes_of(body.get("architectures")) if isinstance(body, dict) else []
    return {"architectures": found} if found else {}
