"""`python -m tests.benchmarks.drift_study`: make the states if need be, count, and write the page."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from tests.benchmarks.drift_study.page import measured, page
from tests.benchmarks.drift_study.pools import SEEN_DOMAINS, ensure_states
from tests.benchmarks.drift_study.study import Found, Study
from tests.real_model import install
from tests.sglang_cpu.install import ensure
from threadpoolctl import threadpool_limits

from specscope_collectors.references.final_norm import read_norm_weight

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "guide" / "drift-study.md"
MEASURED = ROOT / "server" / "specscope_server" / "drift" / "measured.py"


def found_of(folder: Path, name: str, domains: tuple[str, ...]) -> Found:
    """Return the counts against a reference of these domains."""
    weight = read_norm_weight(install.ensure_target(ensure()) / "model.safetensors")
    with threadpool_limits(limits=1, user_api="blas"):
        found = Study(folder, domains, weight).run(is_whole=len(domains) > 1)
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(found))
    return found


def main() -> int:
    """Run the study: about 20 minutes on one processor once the states are there."""
    folder = ensure_states()
    mixed = found_of(folder, "mixed", SEEN_DOMAINS)
    single = found_of(folder, "single", ("chat",))
    PAGE.write_text(page(mixed, single), encoding="utf-8")
    MEASURED.write_text(measured(mixed), encoding="utf-8")
    sys.stdout.write(f"written {PAGE} and {MEASURED}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
