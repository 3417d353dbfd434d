"""Sampling with and without drafts."""

import torch

from sgl_kernel._tree import fill


def tree_speculative_sampling_target_only(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    uniform_samples,
    uniform_samples_for_final_sampling,
    target_probs,
    draft_probs=None,
    threshold_single=1.0,
    threshold_acc=1.0,
    deterministic=True,
):
    """Walk the tree, accepting a child when a coin falls under the target's cumulated probability; then sample once."""
    steps = accept_index.shape[1]
    for request in range(candidates.shape[0]):
        tokens, row_of = candidates[request].tolist(), retrive_index[request].tolist()
        first_child, sibling = retrive_next_token[request].tolist(), retrive_next_sibling[request].tolist()
        accepted, node, refused = [row_of[0]], 0, []
        while len(accepted) < steps:
            child, refused = first_child[node], []
            coin, cumulated = float(uniform_samples[request, node]), 0.0
            while child != -1:
                probability = float(target_probs[request, node, tokens[child]])
                cumulated += probability
                if coin <= cumulated / threshold_acc or probability >= threshold_single:
                    break
                refused.append(tokens[child])
                child = sibling[child]
            if child == -1:
                break
            predicts[accepted[-1]] = tokens[child]
            accepted.append(row_of[child])
            node, refused = child, []
        rest = target_probs[request, node].float().index_fill(0, torch.tensor(refused, dtype=torch.long), 0.0)
        predicts[accepted[-1]] = draw(rest, float(uniform_samples_for_final_sampling[request]))
        fill(accept_index[request, : len(accepted)], accepted)
        accept_token_num[request] = len(accepted) - 1


def draw(weights, uniform):
    """Return the index at which the cumulated weights pass `uniform` of their sum."""
    cumulated = weights.cumsum(-1)
    at = torch.searchsorted(cumulated, torch.tensor([uniform * float(cumulated[-1])]))
    return int(at.clamp_(max=weights.numel() - 1))


def top_k_renorm_prob(probs, top_k):
    """Keep the k most probable tokens of each row [rows, tokens] and renormalise."""
    k = top_k if torch.is_tensor(top_k) else torch.full((probs.shape[0],), int(top_k))
    ordered = probs.sort(-1, descending=True).values
    least = ordered.gather(-1, (k.long().clamp(1, probs.shape[-1]) - 1).view(-1, 1))
    kept = probs.masked_fill(probs < least, 0)
    return kept / kept.sum(-1, keepdim=True)


def top_p_renorm_prob(probs, top_p):
    """Keep the most probable tokens of each row up to a total of p and renormalise."""
    p = top_p if torch.is_tensor(top_p) else torch.full((probs.shape[0],), float(top_p))
    ordered, order = probs.sort(-1, descending=True)
    outside = ordered.cumsum(-1) - ordered > p.view(-1, 1)
    kept = torch.zeros_like(probs).scatter(-1, order, ordered.masked_fill(outside, 0))
    return kept / kept.sum(-1, keepdim=True)


def fast_topk(values, topk, dim=-1):
    """Return the largest values and their indices."""
    return torch.topk(values, topk, dim=dim)
