"""Operators under `torch.ops.sgl_kernel`: attention over the paged cache.

Shapes: queries [tokens, heads, width]; cache buffers [slots, kv heads, width]; `req_to_token` [requests, positions] holds
slots; lengths count all tokens of a request, the new ones included.
"""

import torch

LIBRARY = torch.library.Library("sgl_kernel", "DEF")


def operator(schema):
    """Register a function as the operator of that schema."""

    def register(function):
        LIBRARY.define(schema)
        LIBRARY.impl(schema.split("(")[0], function, "CompositeExplicitAutograd")
        return function

    return register


def attend(query, key, value, scale, logit_cap, allowed):
    """Return softmax(q·k)·v in float32; `allowed` [tokens, keys] masks, None = all."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1).float(), value.repeat_interleave(groups, 1).float()
    scores = torch.einsum("thd,shd->hts", query.float(), key) * scale
    if logit_cap > 0:
        scores = logit_cap * torch.tanh(scores / logit_cap)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, float("-inf"))
    return torch.einsum("hts,shd->thd", scores.softmax(-1), value)


@operator(
    "decode_attention_cpu(Tensor query, Tensor(a!) k_buffer, Tensor(b!) v_buffer, float k_scale, float v_scale,"
    " Tensor(c!) output, Tensor? key, Tensor? value, Tensor loc, Tensor attn_logits, Tensor req_to_token,"
    " Tensor req_pool_indices, Tensor seq_lens, float sm_scale, float logit_cap, bool is_cross, int window,"
    " Tensor? encoder_lens, Tensor? sinks) -> ()"
)
def decode_attention_cpu(
    query,
    k_buffer,
    v_buffer,
    k_scale,
    v_scale,
    output,
    key,
    value,
    loc,
    attn_logits,
    req_to_token,
    req_pool_indices,
    seq_lens,
    sm_scale,
    logit_cap,
    is_cross,
    window,
    encoder_lens,
    sinks,
):
    """One new token per request."""
    if key is not None:
        store_cache_cpu(key, value, k_buffer, v_buffer, loc)
    for token, (request, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        slots = req_to_token[request, :length].long()
        one = slice(token, token + 1)
        seen = attend(query[one], k_buffer[slots], v_buffer[slots], sm_scale, logit_cap, None)
        output[one] = seen.to(output.dtype)


@operator(
    "extend_attention_cpu(Tensor q, Tensor? k, Tensor? v, Tensor(a!) o, Tensor k_buffer, Tensor v_buffer,"
    " float k_scale, float v_scale, Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens,"
    " Tensor extend_seq_lens, Tensor extend_start_loc, int max_len_extend, float sm_scale, float logit_cap,"
    " bool is_cross, int window, Tensor? encoder_lens, Tensor? sinks, Tensor? tree_mask, bool is_causal) -> ()"
)
def extend_attention_cpu(
    q,
    k,
    v,
    o,
    k_buffer,
    v_buffer,
    k_scale,
    v_scale,
    req_to_token,
    req_pool_indices,
    seq_lens,
    extend_seq_lens,
    extend_start_loc,
    max_len_extend,
    sm_scale,
    logit_cap,
    is_cross,
    window,
    encoder_lens,
    sinks,
    tree_mask,
    is_causal,
):
    """Several new tokens per request: prefill (causal) or a tree of drafts (masked)."""
    lengths, news = seq_lens.tolist(), extend_seq_lens.tolist()
    masks = tree_masks(tree_mask, lengths, news)
    rows = zip(req_pool_indices.tolist(), lengths, news, extend_start_loc.tolist(), masks, strict=True)
    for request, length, new, start, mask in rows:
        if mask is None and is_causal:
            mask = torch.arange(length)[None, :] <= torch.arange(length - new, length)[:, None]
        slots = req_to_token[request, :length].long()
        seen = attend(q[start : start + new], k_buffer[slots], v_buffer[slots], sm_scale, logit_cap, mask)
        o[start : start + new] = seen.to(o.dtype)


def tree_masks(packed, lengths, news):
    """Unpack one mask [new, length] per request; the packed form covers all positions, or the new ones alone."""
    if packed is None:
        return [None] * len(lengths)
    flat, masks, at = packed.view(-1), [], 0
    full = flat.numel() >= sum(length * new for length, new in zip(lengths, news, strict=True))
    for length, new in zip(lengths, news, strict=True):
        width = length if full else new
        mask = torch.ones(new, length, dtype=torch.bool)
        mask[:, length - width :] = flat[at : at + new * width].view(new, width).bool()
        masks.append(mask)
        at += new * width
    return masks


@operator("store_cache_cpu(Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor loc) -> ()")
def store_cache_cpu(k, v, k_cache, v_cache, loc):
    """Write new keys and values into their slots."""
    k_cache[loc] = k.view(-1, *k_cache.shape[1:]).to(k_cache.dtype)
    v_cache[loc] = v.view(-1, *v_cache.shape[1:]).to(v_cache.dtype)


@operator("init_cpu_threads_env(str ids) -> str")
def init_cpu_threads_env(ids):
    """Bind nothing; one thread is enough."""
    return "not bound: " + ids
