"""Run with the rig's Python: hidden states of texts from transformers, the model's own way.

Arguments: the model, and boundaries. Standard input: JSON list of {prompt, output}. Prints
[boundaries, tokens, H] per text.
"""

from __future__ import annotations

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(model_path: str, boundaries: list[int]) -> None:
    """Print the residual stream after so many layers."""
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.bfloat16)
    residuals: list[torch.Tensor] = []
    for layer in model.model.layers:
        layer.register_forward_pre_hook(
            lambda _, args, kwargs: residuals.append(args[0] if args else kwargs["hidden_states"]),
            with_kwargs=True,
        )
    model.model.norm.register_forward_pre_hook(lambda _, args: residuals.append(args[0]))
    found = []
    for text in json.load(sys.stdin):
        residuals.clear()
        ids = tokenizer(text["prompt"])["input_ids"] + text["output"]
        with torch.inference_mode():
            model.model(torch.tensor([ids]), use_cache=False)
        found.append(torch.stack([residuals[boundary][0] for boundary in boundaries]).float().tolist())
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], [int(boundary) for boundary in sys.argv[2:]])
