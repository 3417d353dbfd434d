"""The tree of drafts of one cycle: how it is built, and the greedy walk that accepts along it.

A tree has n nodes per request; node 0 is the last accepted token. `next` is the first child of a node and `sibling` the
next child of the same parent; -1 = none. A chain (topk 1) is a tree in which every node has one child.
"""

import torch

FULL_MASK, DRAFT_MASK, BIT_MASK = 0, 1, 2


def build_tree_kernel_efficient_cpu(
    parent_list,
    selected_index,
    verified_seq_len,
    tree_mask,
    positions,
    retrieve_index,
    retrieve_next_token,
    retrieve_next_sibling,
    topk,
    depth,
    draft_token_num,
    tree_mask_mode,
):
    """Fill mask, positions and links in place. `selected_index` numbers the candidates of all depths in one row."""
    if int(tree_mask_mode) == BIT_MASK:
        raise NotImplementedError("the rig's kernels have no bit-packed tree mask")
    nodes, requests = int(draft_token_num), verified_seq_len.numel()
    parents = parent_list.reshape(requests, -1).tolist()
    chosen = selected_index.reshape(requests, -1).tolist()
    mask, offset = tree_mask.view(-1), 0
    for request, length in enumerate(verified_seq_len.tolist()):
        parent = parent_nodes(parents[request], chosen[request], nodes, topk)
        first_child, sibling = child_links(parent)
        first = request * nodes
        retrieve_index.view(requests, nodes)[request] = torch.arange(first, first + nodes)
        fill(retrieve_next_token.view(requests, nodes)[request], first_child)
        fill(retrieve_next_sibling.view(requests, nodes)[request], sibling)
        rows, depths = ancestry(parent)
        fill(positions.view(-1)[first : first + nodes], [length + d for d in depths])
        width = nodes if int(tree_mask_mode) == DRAFT_MASK else length + nodes
        mask[offset : offset + nodes * width].view(nodes, width)[:, width - nodes :] = rows
        offset += nodes * width


def parent_nodes(parents, chosen, nodes, topk):
    """Return the parent of each node; -1 for the root, `nodes` or more where the parent was not selected."""
    node_of = {}
    for node, candidate in enumerate(chosen, start=1):
        node_of.setdefault(candidate, node)
    parent = [-1] * nodes
    for node in range(1, nodes):
        block = chosen[node - 1] // topk
        parent[node] = 0 if block == 0 else node_of.get(parents[block], nodes + 1)
    return parent


def child_links(parent):
    """Return first child and next sibling of each node, children in ascending order."""
    first_child, sibling = [-1] * len(parent), [-1] * len(parent)
    for node in range(len(parent) - 1, 0, -1):
        above = parent[node]
        if above < len(parent):
            sibling[node] = first_child[above]
            first_child[above] = node
    return first_child, sibling


def ancestry(parent):
    """Return who is seen by whom [nodes, nodes] (oneself, one's ancestors, the root) and the depth of each node."""
    nodes = len(parent)
    rows = torch.zeros(nodes, nodes, dtype=torch.bool)
    rows[:, 0] = True
    depths = [0] * nodes
    for node in range(1, nodes):
        at = node
        while 0 < at < nodes:
            rows[node, at] = True
            at = parent[at]
            depths[node] += 1
    return rows, depths


def fill(target, values):
    """Write a list into a tensor of any integer type."""
    target.copy_(torch.tensor(list(values), dtype=target.dtype))


def verify_tree_greedy_cpu(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Accept along the path of the target's own choices; write predictions, accepted rows and their count in place."""
    steps = accept_index.shape[1]
    target = target_predict.reshape(-1).tolist()
    links = zip(
        candidates.tolist(),
        retrive_index.tolist(),
        retrive_next_token.tolist(),
        retrive_next_sibling.tolist(),
        strict=True,
    )
    for request, (tokens, row_of, first_child, sibling) in enumerate(links):
        accepted, node = [row_of[0]], 0
        while len(accepted) < steps:
            node = first_child[node]
            while node != -1 and tokens[node] != target[accepted[-1]]:
                node = sibling[node]
            if node == -1:
                break
            accepted.append(row_of[node])
        for row in accepted:
            predicts[row] = target[row]
        fill(accept_index[request, : len(accepted)], accepted)
        accept_token_num[request] = len(accepted) - 1


def reconstruct_indices_from_tree_mask(
    tree_mask,
    verified_seq_len,
    positions,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    batch_size,
    draft_token_num,
):
    """Fill positions and links in place from masks [requests, nodes, nodes] that say who is whose ancestor."""
    requests, nodes = int(batch_size), int(draft_token_num)
    masks = tree_mask.view(-1)[: requests * nodes * nodes].view(requests, nodes, nodes).bool().tolist()
    for request, (mask, length) in enumerate(zip(masks, verified_seq_len.tolist(), strict=True)):
        above = [[other for other in range(node) if mask[node][other]] for node in range(nodes)]
        # A node without a parent, other than the root, stands in nobody's list of children.
        first_child, sibling = child_links([found[-1] if found else nodes for found in above])
        own = slice(request * nodes, (request + 1) * nodes)
        fill(positions.view(-1)[own], [length + len(found) for found in above])
        fill(retrive_index.view(-1)[own], range(own.start, own.stop))
        fill(retrive_next_token.view(-1)[own], first_child)
        fill(retrive_next_sibling.view(-1)[own], sibling)
