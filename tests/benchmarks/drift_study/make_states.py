"""States of texts at all boundaries of the real model: `python make_states.py MODEL PLAN FOLDER`.

Runs in the rig's Python. PLAN is JSON: {"pools": [{"name", "texts" or "questions", "rows", "variants"}]}.
For each pool and variant of the target, ``FOLDER/POOL-VARIANT.npz`` gets ``states`` float16 (rows,
boundaries, H), ``ids``, ``positions`` and ``requests``. Rows stand behind the first four positions, chosen by
chance; of a conversation only those of the answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from specscope_collectors.references.torch_target import Target

SEED = 42
TOKENS, NEW_TOKENS, BATCH = 192, 96, 32
GROUP = 32
HEAD = 4


def rounded(weight: torch.Tensor, variant: str) -> torch.Tensor:
    """Return a weight as a quantised target has it: symmetric in groups of 32, or e4m3 scaled by row."""
    values = weight.float()
    if variant == "fp8":
        scale = values.abs().amax(1, keepdim=True) / 448
        return ((values / scale).to(torch.float8_e4m3fn).float() * scale).to(weight.dtype)
    most = {"int8": 127, "int4": 7}[variant]
    groups = values.view(values.shape[0], -1, GROUP)
    scale = groups.abs().amax(2, keepdim=True).clamp(min=1e-12) / most
    return ((groups / scale).round() * scale).view_as(values).to(weight.dtype)


def quantise(target: Target, variant: str) -> None:
    """Round the weights of all linear layers of the decoder; fp8 rounds what they are given, too."""
    for name, module in target.model.named_modules():
        if isinstance(module, torch.nn.Linear) and "lm_head" not in name:
            module.weight.data = rounded(module.weight.data, variant)
            if variant == "fp8":
                module.register_forward_pre_hook(lambda _, args: (activation(args[0]), *args[1:]))


def activation(values: torch.Tensor) -> torch.Tensor:
    """Return activations in e4m3, scaled row by row."""
    scale = values.abs().amax(-1, keepdim=True).clamp(min=1e-12).float() / 448
    return ((values.float() / scale).to(torch.float8_e4m3fn).float() * scale).to(values.dtype)


def conversations(target: Target, tokenizer: Any, questions: list[str]) -> Iterator[tuple[list[int], int]]:
    """Yield (token ids, length of the question) of answers, sampled at temperature 0.8."""
    torch.manual_seed(SEED)
    for first in range(0, len(questions), BATCH):
        turns = [[{"role": "user", "content": each}] for each in questions[first : first + BATCH]]
        asked = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt", return_dict=True, padding=True
        )
        with torch.inference_mode():
            answers = target.model.generate(
                **asked, max_new_tokens=NEW_TOKENS, do_sample=True, temperature=0.8, top_p=0.95,
                pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for ids, mask in zip(answers.tolist(), asked["attention_mask"].tolist(), strict=True):
            start, width = len(mask) - sum(mask), len(mask)
            end = next((n for n in range(width, len(ids)) if ids[n] == tokenizer.eos_token_id), len(ids))
            yield ids[start:end], sum(mask)


def texts_of(target: Target, tokenizer: Any, pool: dict[str, Any]) -> list[tuple[list[int], int]]:
    """Return (token ids, first row that counts) of each request."""
    if "questions" in pool:
        return list(conversations(target, tokenizer, pool["questions"]))
    return [(tokenizer(text)["input_ids"][:TOKENS], 0) for text in pool["texts"]]


def run(target: Target, requests: list[tuple[list[int], int]], pool: dict[str, Any], path: Path) -> None:
    """Write the states of one pool."""
    draw = np.random.default_rng([SEED, *pool["name"].encode()])
    kept: dict[str, list[np.ndarray]] = {"states": [], "ids": [], "positions": [], "requests": []}
    for number, (ids, begin) in enumerate(requests):
        body = np.arange(max(begin, HEAD), len(ids))
        rows = np.sort(draw.choice(body, min(pool["rows"], len(body)), replace=False))
        states = target.states(ids, rows)
        kept["states"].append(states.transpose(1, 0, 2).astype(np.float16))
        kept["ids"].append(np.array(ids)[rows])
        kept["positions"].append(rows)
        kept["requests"].append(np.full(len(rows), number))
    np.savez(path, **{name: np.concatenate(parts) for name, parts in kept.items()})


def main(model: Path, plan: Path, folder: Path) -> None:
    """Make what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    pools = json.loads(plan.read_text())["pools"]
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    requests: dict[str, list[tuple[list[int], int]]] = {}
    for variant in ("bf16", "int8", "fp8", "int4"):
        target = Target(model, "bfloat16", threads=1)
        if variant != "bf16":
            quantise(target, variant)
        for pool in pools:
            name = pool["name"]
            if variant == "bf16":
                requests[name] = texts_of(target, tokenizer, pool)
            if variant in pool["variants"]:
                run(target, requests[name], pool, folder / f"{name}-{variant}.npz")
                sys.stdout.write(f"{name} {variant}: {len(requests[name])} requests\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
