"""Book-keeping of the key-value cache: which slot of the pool holds which token of which request."""

import ctypes

import torch


def assign_req_to_token_pool_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len
):
    """Write the new slots into each request's row, positions start..end."""
    at = 0
    for row, start, end in triples(req_pool_indices, start_offset, end_offset):
        req_to_token[row, start:end] = out_cache_loc[at : at + end - start].to(req_to_token.dtype)
        at += end - start


def assign_extend_cache_locs_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len
):
    """Read the slots of positions start..end of each request, one after the other."""
    at = 0
    for row, start, end in triples(req_pool_indices, start_offset, end_offset):
        out_cache_loc[at : at + end - start] = req_to_token[row, start:end].to(out_cache_loc.dtype)
        at += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices, req_to_token, seq_lens, out_cache_loc, pool_len, topk, num_steps
):
    """Read the slots that the drafts of one cycle will use."""
    width = topk * num_steps
    for index, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        slots = req_to_token[row, length : length + width]
        out_cache_loc[index * width : (index + 1) * width] = slots.to(out_cache_loc.dtype)


def build_draft_decode_metadata_cpu(req_to_token, req_pool_indices, seq_lens, topk, num_steps, pool_len):
    """Return one row of slots per request and branch: the sequence, then the drafts of that branch."""
    rows = []
    for request, length in zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True):
        for branch in range(topk):
            drafts = length + branch * num_steps
            row = torch.zeros(pool_len, dtype=req_to_token.dtype)
            row[:length] = req_to_token[request, :length]
            row[length : length + num_steps] = req_to_token[request, drafts : drafts + num_steps]
            rows.append(row)
    return torch.stack(rows) if rows else req_to_token.new_empty((0, pool_len))


def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    """Read the last accepted token of each request."""
    requests = accept_lens.numel()
    last = torch.arange(requests) * accept_stride + accept_lens.long() - 1
    bonus_tokens[:requests] = accept_tokens.view(-1)[last].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc, size=None):
    """Gather the slots of the accepted rows (-1 = none)."""
    kept = accept_index.reshape(-1)
    kept = kept[kept > -1].long()
    accept_out_cache_loc[: kept.numel()] = out_cache_loc[kept]


def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc, *rest):
    """Copy slots from one place to another in the buffers of all layers (addresses, bytes per slot)."""
    targets, sources = tgt_loc.tolist(), src_loc.tolist()
    if targets == sources:
        return
    for base, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        read = [ctypes.string_at(base + source * stride, stride) for source in sources]
        for target, row in zip(targets, read, strict=True):
            ctypes.memmove(base + target * stride, row, stride)


def triples(rows, starts, ends):
    """Walk three tensors of the same length together."""
    return zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
