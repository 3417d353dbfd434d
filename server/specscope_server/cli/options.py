"""Options that commands share, each with one name and one help text."""

from __future__ import annotations

from typing import Annotated

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="Database URL: sqlite:///FILE or postgresql://USER@HOST/NAME. "
        "Without it: SPECSCOPE_DATABASE, the settings file, the default file here.",
    ),
]
