"""What the commands about references read of their options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

from specscope_collectors.references.building import MAX_TOKEN_IDS
from specscope_collectors.references.errors import DumpError

MAX_TOKEN_FILE_BYTES = 1_000_000


def file_name(called: str) -> str:
    """Return a name of a reference as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", called)


def read_token_ids(path: Path) -> tuple[int, ...]:
    """Return the token ids of a JSON list. Raises DumpError, OSError."""
    with path.open("rb") as file:
        content = file.read(MAX_TOKEN_FILE_BYTES + 1)
    try:
        ids = msgspec.json.decode(content, type=list[Annotated[int, msgspec.Meta(ge=0, lt=2**31)]])
    except msgspec.MsgspecError as error:
        raise DumpError(f"{path} is no JSON list of token ids: {error}") from None
    return tuple(dict.fromkeys(ids))[:MAX_TOKEN_IDS]
