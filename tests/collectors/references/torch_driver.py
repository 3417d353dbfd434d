"""Runs in the rig's Python, which has torch: `python torch_driver.py TARGET FOLDER`; prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from specscope_collectors.references.document import packed
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.torch_replay import ReplayOrder, replay
from specscope_collectors.references.torch_target import Target


def write_dump(folder: Path, requests: int, tokens: int, vocabulary: int, size: int) -> None:
    """Write a dump of random token ids; its states do not matter here."""
    folder.mkdir()
    draw = torch.Generator().manual_seed(1)
    for number in range(requests):
        ids = torch.randint(0, vocabulary, (tokens,), generator=draw)
        states = [torch.zeros(tokens, size, dtype=torch.bfloat16) for _ in range(4)]
        row = {"input_ids": ids, "hidden_states": states, "loss_mask": torch.ones(tokens)}
        torch.save(row, folder / f"data_{number}.pt")


def refusal(work: object) -> str:
    """Return why something is refused."""
    try:
        work()  # type: ignore[operator]
    except DumpError as error:
        return str(error)
    return ""


def main(model: Path, folder: Path) -> None:
    """Replay, and compare with what transformers hands out."""
    target = Target(model, "float32", threads=1)
    write_dump(folder / "dump", 12, 40, target.vocabulary, target.hidden_size)
    order = ReplayOrder(
        dumps=(folder / "dump",), name="all", made_ms=1_790_000_000_000, model="tiny", budget_rows=1024,
        seed=1, rows_file=folder / "all.rows.npz",
    )  # fmt: skip
    (folder / "all.reference.json.gz").write_bytes(packed(replay(order, target)))
    ids = list(range(5, 35))
    states = torch.from_numpy(target.states(ids))
    with torch.inference_mode():
        handed = target.model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        small = target.model.config.rms_norm_eps
        final = torch.from_numpy(target.norm_weight)
        last = states[-1] / (states[-1].pow(2).mean(-1, keepdim=True) + small).sqrt() * final
    difference = max((states[n] - each[0]).abs().max().item() for n, each in enumerate(handed[:-1]))
    seen = {
        "boundaries": target.boundaries,
        "layers": target.model.config.num_hidden_layers,
        "largest_difference": difference,
        "last_after_norm": ((last - handed[-1][0]).norm() / handed[-1].norm()).item(),
        "foreign": refusal(lambda: target.states([target.vocabulary])),
        "no_model": refusal(lambda: Target(folder / "dump")),
    }
    sys.stdout.write(f"{json.dumps(seen)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
