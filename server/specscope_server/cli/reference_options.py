"""What the commands about references read of their options."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import msgspec

from specscope_collectors.references.building import MAX_TOKEN_IDS
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.walking import beginning_of

MAX_TOKEN_FILE_BYTES = 1_000_000


def file_name(called: str) -> str:
    """Return a name of a reference as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", called)


def check_result(path: Path, option: str) -> None:
    """See that a result can be put there, before the work that it is of. A device or a pipe would be replaced
    by a file. Raises DumpError.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise DumpError(f"{option} {path} cannot be written: there is no folder {folder}; make it first")
    if path.exists() and not path.is_file():
        raise DumpError(f"{option} {path} is no regular file and would be replaced by one; name a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DumpError(f"{option} {path} cannot be written: the folder {folder} may not be written into")


def read_token_ids(path: Path) -> tuple[int, ...]:
    """Return the token ids of a JSON list. Raises DumpError, OSError."""
    content = beginning_of(path, MAX_TOKEN_FILE_BYTES + 1)
    try:
        ids = msgspec.json.decode(content, type=list[Annotated[int, msgspec.Meta(ge=0, lt=2**31)]])
    except msgspec.MsgspecError as error:
        raise DumpError(f"{path} is no JSON list of token ids: {error}") from None
    return tuple(dict.fromkeys(ids))[:MAX_TOKEN_IDS]
