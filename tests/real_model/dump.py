"""Write training data of an EAGLE-3 draft: `python dump.py MODEL FOLDER ROWS TOKENS`, with the rig's Python.

The target answers prompts greedily in plain torch, batched, in float32 arithmetic on its bfloat16 weights;
what a trainer would keep is recorded on the way:

    FOLDER/data_config.json           what the rows are
    FOLDER/rows_0-100/data_0.pt …     {"input_ids": [T], "hidden_states": 4 × [T, H], "loss_mask": [T]}

The states are bfloat16: those at the boundaries 2, n/2 and n - 3 (the residual stream after so many layers),
and that of the last layer before the final norm. The mask is 1 on the answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from prompts import HELD_OUT, all_prompts
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 32
ROWS_A_FOLDER = 100

Row = dict[str, Any]


class Answering:
    """The target, and the residual streams of the forward pass just made, by boundary."""

    def __init__(self, path: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.tokenizer.padding_side = "left"
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.layers = self.model.config.num_hidden_layers
        self.boundaries = [2, self.layers // 2, self.layers - 3]
        self.streams: dict[int, torch.Tensor] = {}
        for boundary in self.boundaries:
            self.model.model.layers[boundary].register_forward_pre_hook(self._keep(boundary))
        self.model.model.norm.register_forward_pre_hook(self._keep(self.layers))

    def _keep(self, boundary: int) -> Any:
        def hook(module: Any, args: tuple[Any, ...]) -> None:
            self.streams[boundary] = args[0].to(torch.bfloat16)

        return hook

    def chat(self, question: str) -> str:
        """Return the text that the model is given."""
        turns = [{"role": "user", "content": question}]
        text: str = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return text

    @torch.inference_mode()
    def answer(self, questions: list[str], tokens: int) -> list[Row]:
        """Return one row for each question; at most `tokens` are answered, the last one is fed, too."""
        texts = self.tokenizer([self.chat(each) for each in questions], return_tensors="pt", padding=True)
        mask, past, fed = texts.attention_mask, None, texts.input_ids
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        real = [each.bool() for each in mask]
        ids = [each[kept].tolist() for each, kept in zip(fed, real, strict=True)]
        prompts = [len(each) for each in ids]
        states: list[dict[int, list[torch.Tensor]]] = [{} for _ in questions]
        going = [True] * len(questions)
        for step in range(tokens + 1):
            output = self.model(
                input_ids=fed, attention_mask=mask, position_ids=positions, past_key_values=past,
                use_cache=True, logits_to_keep=1,
            )  # fmt: skip
            for row in range(len(questions)):
                if going[row]:
                    for boundary, stream in self.streams.items():
                        kept = stream[row][real[row]] if step == 0 else stream[row]
                        states[row].setdefault(boundary, []).append(kept)
            past, chosen = output.past_key_values, output.logits[:, -1].argmax(-1)
            going = [
                on and (step == 0 or ids[row][-1] != self.tokenizer.eos_token_id)
                for row, on in enumerate(going)
            ]
            if step == tokens or not any(going):
                break
            for row, token in enumerate(chosen.tolist()):
                if going[row]:
                    ids[row].append(token)
            fed, positions = chosen[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(questions), 1)], 1)
        return [
            row_of(ids[row], prompts[row], [torch.cat(states[row][b]) for b in sorted(self.streams)])
            for row in range(len(questions))
        ]


def row_of(ids: list[int], prompt: int, states: list[torch.Tensor]) -> Row:
    """Return what a trainer keeps of one text."""
    assert {len(ids)} == {len(each) for each in states}
    mask = [0] * prompt + [1] * (len(ids) - prompt)
    return {"input_ids": torch.tensor(ids), "hidden_states": states, "loss_mask": torch.tensor(mask)}


def main(model: str, folder: Path, rows: int, tokens: int) -> None:
    """Write rows and their description."""
    torch.set_num_threads(1)
    answering = Answering(model)
    questions = all_prompts()[HELD_OUT : HELD_OUT + rows]
    for first in range(0, rows, BATCH):
        made = answering.answer(questions[first : first + BATCH], tokens)
        for number, row in enumerate(made, start=first):
            start = number // ROWS_A_FOLDER * ROWS_A_FOLDER
            place = folder / f"rows_{start}-{start + ROWS_A_FOLDER}"
            place.mkdir(parents=True, exist_ok=True)
            torch.save(row, place / f"data_{number}.pt")
    described = {
        "format": "eagle3-hidden-states",
        "target_model_path": "SmolLM2-135M-Instruct",
        "hidden_size": answering.model.config.hidden_size,
        "num_hidden_layers": answering.layers,
        "dtype": "bfloat16",
        "boundaries": answering.boundaries,
        "sglang_layer_ids": [boundary - 1 for boundary in answering.boundaries],
        "hidden_states": [f"input of layer {boundary}" for boundary in answering.boundaries]
        + ["output of the last layer, before the final norm"],
        "rows": rows,
        "rows_per_folder": ROWS_A_FOLDER,
        "file_pattern": "rows_{start}-{end}/data_{row}.pt",
        "max_new_tokens": tokens,
    }
    (folder / "data_config.json").write_text(json.dumps(described, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
