"""The plotly.js that is served and exported: the small bundle fetched at build time, else the full one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

PACKAGED = Path(__file__).resolve().parent.parent / "_frontend"
CHECKOUT = Path(__file__).resolve().parents[3] / "frontend"
PLOTLY_FILE = "plotly.min.js"
_STYLE_GUARD = re.compile(rb'if\(!document\.getElementById\("([0-9a-f]{40,64})"\)\)')


def frontend_folder() -> Path:
    """Return where templates and static files are: in the wheel inside this package, else in the checkout.

    An editable install leaves a copy of the wheel's folder elsewhere, which is never read.
    """
    return PACKAGED if PACKAGED.is_dir() else CHECKOUT


@dataclass(frozen=True, slots=True)
class PlotlyLibrary:
    """One plotly.js file."""

    path: Path
    digest: str
    style_ids: tuple[str, ...]
    """Ids of style elements that the library adds unless an element with the id is there. Our content
    security policy forbids inline styles, and charts do not need these (they belong to map controls)."""

    @property
    def url(self) -> str:
        """Return its address on this server."""
        return f"/static/{self.digest}/{PLOTLY_FILE}"


@lru_cache(maxsize=1)
def plotly_library() -> PlotlyLibrary:
    """Return the library of this installation; both are of the version that the `plotly` package ships."""
    return read_library(frontend_folder() / "static" / "vendor" / "plotly-cartesian.min.js")


def read_library(small: Path) -> PlotlyLibrary:
    """Return the bundle at ``small``, or when that is absent the one inside the `plotly` Python package."""
    path = small if small.is_file() else Path(str(files("plotly") / "package_data" / PLOTLY_FILE))
    body = path.read_bytes()
    guards = tuple(match.decode() for match in _STYLE_GUARD.findall(body))
    return PlotlyLibrary(path, hashlib.sha256(body).hexdigest()[:16], guards)
