"""Write `requirements/constraints.txt`: the versions of this environment, which the tests passed with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "requirements" / "constraints.txt"
HEADER = (
    "# Versions that the tests pass with. Written by `make constraints`; ranges stand in pyproject.toml.\n"
)


def main() -> None:
    """Ask pip for what is installed and write it, our own package left out."""
    command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable", "--exclude", "specscope"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pins = [line for line in listed.splitlines() if "==" in line]
    TARGET.write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(pins)} versions")


if __name__ == "__main__":
    main()
