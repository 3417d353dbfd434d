"""Write tiny models whose next token is known: `python make_models.py FOLDER`, with the rig's Python.

`tiny-target` is a Llama whose greedy next token depends on the current token alone: a fixed permutation
(``next_token`` in vocabulary.json). The output head holds the embedding of token t in the row of
next_token[t]; the layers only add noise too small to change the winner. `tiny-eagle3` is a draft that
knows the same permutation but can only say the 320 tokens of ``draft_vocabulary``: it is wrong exactly
when the right token is none of these.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tiny_tokenizer import write_tokenizer
from torch import Tensor

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_WIDTH = 256, 4, 4, 2, 64
HEAD_SCALE = 6.0
"""Logits of the right token stand far enough above the rest for bfloat16."""


def main(folder: Path) -> None:
    """Write both models."""
    torch.manual_seed(0)
    known = json.loads((Path(__file__).parent / "vocabulary.json").read_text())
    next_token, draft_vocabulary = torch.tensor(known["next_token"]), torch.tensor(known["draft_vocabulary"])
    size = len(next_token)
    embedding = torch.nn.functional.normalize(torch.randn(size, HIDDEN), dim=1)
    head = torch.zeros(size, HIDDEN)
    head[next_token] = embedding * HEAD_SCALE
    write_target(folder / "tiny-target", embedding, head)
    write_draft(folder / "tiny-eagle3", embedding, head, next_token, draft_vocabulary)


def write_target(folder: Path, embedding: Tensor, head: Tensor) -> None:
    """Write the Llama: `head` [tokens, HIDDEN] turns the embedding of a token into its successor."""
    weights = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": head,
    }
    for layer in range(LAYERS):
        weights |= target_layer(f"model.layers.{layer}.", inner=len(embedding))
    write_model(folder, weights, configuration("LlamaForCausalLM", LAYERS, len(embedding)))
    ends = {"bos_token_id": len(embedding) - 8, "eos_token_id": len(embedding) - 7}
    (folder / "generation_config.json").write_text(json.dumps(ends))


def target_layer(prefix: str, inner: int) -> dict[str, Tensor]:
    """Return a decoder layer of faint noise."""
    return {
        **attention(prefix, HIDDEN, output_scale=0.012),
        prefix + "mlp.gate_proj.weight": noise(inner, HIDDEN),
        prefix + "mlp.up_proj.weight": noise(inner, HIDDEN),
        prefix + "mlp.down_proj.weight": noise(HIDDEN, inner, scale=0.005),
        prefix + "input_layernorm.weight": torch.ones(HIDDEN),
        prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN),
    }


def write_draft(
    folder: Path, embedding: Tensor, head: Tensor, next_token: Tensor, vocabulary: Tensor
) -> None:
    """Write the EAGLE-3 draft: `fc` averages the three captured states, the MLP maps E[u] to E[next u]."""
    size = len(embedding)
    weights = {
        "fc.weight": torch.eye(HIDDEN).repeat(1, 3) / 3 + noise(HIDDEN, 3 * HIDDEN, scale=0.01),
        "norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": head[vocabulary],
        "t2d": torch.zeros(size, dtype=torch.bool).index_fill(0, vocabulary, True),
        "d2t": vocabulary - torch.arange(len(vocabulary)),
        **attention("midlayer.", 2 * HIDDEN, output_scale=0.003),
        "midlayer.mlp.gate_proj.weight": embedding * 0.9,
        "midlayer.mlp.up_proj.weight": embedding * 0.9,
        "midlayer.mlp.down_proj.weight": (embedding[next_token] - embedding).T * 0.005,
        "midlayer.hidden_norm.weight": torch.ones(HIDDEN),
        "midlayer.input_layernorm.weight": torch.ones(HIDDEN),
        "midlayer.post_attention_layernorm.weight": torch.ones(HIDDEN),
    }
    # The ids must be given: SGLang's defaults (2, n // 2, n - 3) collide in a target of four layers.
    captured = {"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "use_aux_hidden_state": True}
    extra = {"draft_vocab_size": len(vocabulary), "target_hidden_size": HIDDEN, "eagle_config": captured}
    write_model(folder, weights, configuration("LlamaForCausalLMEagle3", 1, size) | extra)


def attention(prefix: str, width: int, output_scale: float) -> dict[str, Tensor]:
    """Return the four projections of one attention block that reads states of that width."""
    return {
        prefix + "self_attn.q_proj.weight": noise(HEADS * HEAD_WIDTH, width),
        prefix + "self_attn.k_proj.weight": noise(KV_HEADS * HEAD_WIDTH, width),
        prefix + "self_attn.v_proj.weight": noise(KV_HEADS * HEAD_WIDTH, width),
        prefix + "self_attn.o_proj.weight": noise(HIDDEN, HEADS * HEAD_WIDTH, scale=output_scale),
    }


def noise(*shape: int, scale: float = 0.02) -> Tensor:
    """Return normal noise of that shape."""
    return torch.randn(*shape) * scale


def configuration(architecture: str, layers: int, size: int) -> dict[str, Any]:
    """Return config.json of a Llama with `size` tokens."""
    return {
        "architectures": [architecture],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": size,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_WIDTH,
        "vocab_size": size,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "bos_token_id": size - 8,
        "eos_token_id": size - 7,
        "pad_token_id": size - 6,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "bfloat16",
    }


def write_model(folder: Path, weights: dict[str, Tensor], settings: dict[str, Any]) -> None:
    """Write the weights in bfloat16 (integer tables as they are), config.json and the tokenizer."""
    folder.mkdir(parents=True)
    save_file(
        {name: stored(weight) for name, weight in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    (folder / "config.json").write_text(json.dumps(settings, indent=1))
    write_tokenizer(folder, settings["vocab_size"])


def stored(weight: Tensor) -> Tensor:
    """Return the weight as the file holds it."""
    return (weight.to(torch.bfloat16) if weight.is_floating_point() else weight).contiguous()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
