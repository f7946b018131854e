"""On how many nodes the ranks are, where each node has a part of the set: shard="local".

    given        nodes=, node=
    found        LOCAL_WORLD_SIZE, GROUP_WORLD_SIZE, GROUP_RANK or NODE_RANK     what a launcher on each node says
                 SLURM_STEP_NUM_NODES or SLURM_NNODES, SLURM_NODEID              of a step that srun has started
    else         one node where there is one rank, and an error where there are several

All that is known must agree, and ranks be numbered node by node: rank = node * ranks of a node + local rank. Parts
follow from the number of nodes and from that, so no rank has to ask another where it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _check, _ranks


class Named(NamedTuple):
    """The nodes by the caller: their number, and which one this process is on."""

    nodes: int | None
    node: int | None


class _Claim(NamedTuple):
    """A statement about nodes."""

    by: str
    nodes: int | None
    node: int | None


def given(shard: Any, nodes: Any, node: Any, reshard_every: Any) -> Named | None:
    """The nodes by the caller; None if nodes have no parts of their own.

    Raises TypeError or ValueError for arguments that make no sense.
    """
    if not (isinstance(shard, str) and shard == "local"):
        for name, value in (("nodes", nodes), ("node", node), ("reshard_every", reshard_every or None)):
            if value is not None:
                raise ValueError(f'{name} belongs to shard="local"')
        return None
    if nodes is not None:
        nodes = _check.whole("nodes", nodes, 1, _ranks.MAX_RANKS)
    if node is not None:
        if nodes is None:
            raise ValueError("node needs nodes, their number")
        node = _check.whole("node", node, 0, nodes - 1)
    return Named(nodes, node)


def now(named: Named, ranks: _ranks.Ranks, variables: Mapping[str, str] | None = None) -> int:
    """The number of nodes that these ranks are on.

    Raises:
        ChoiceError: it is not known, or what is known contradicts itself.
    """
    rank, world_size = ranks
    claims = [] if named.nodes is None else [_Claim("nodes=" if named.node is None else "nodes= and node=", *named)]
    if world_size > 1:
        # Of one rank that is alone, variables may tell of others.
        claims += _claims(os.environ if variables is None else variables, ranks)
    counts = [claim for claim in claims if claim.nodes is not None]
    for claim in counts[1:]:
        if claim.nodes != counts[0].nodes:
            raise _ranks.wrong(
                f'shard="local": {counts[0].by} says {_check.counted(counts[0].nodes or 0, "node")}, and '
                f"{claim.by} says {claim.nodes}",
                f"{world_size} ranks are on these nodes: unset what is left from something else, or give the nodes= "
                "that they are on",
            )
    if not counts:
        if world_size == 1:
            return 1
        raise _ranks.wrong(
            f'shard="local" needs to know on how many nodes the {world_size} ranks are, and nothing tells it',
            "give nodes=, or start the ranks with torchrun or srun, which tell it",
        )
    nodes = counts[0].nodes or 1
    if world_size % nodes:
        raise _ranks.wrong(
            f'shard="local": {_check.counted(world_size, "rank")} on {_check.counted(nodes, "node")} '
            f"({counts[0].by}) are not equally many on each",
            'start equally many ranks on each node, or give shard="auto"',
        )
    expected = rank // (world_size // nodes)
    for claim in claims:
        if claim.node is not None and claim.node != expected:
            raise _ranks.wrong(
                f'shard="local": {_ranks.words(ranks)} is on node {claim.node} of {nodes} by {claim.by}, and would '
                f"be on node {expected} if ranks were numbered node by node",
                "number them so (srun --distribution=block), unset what is left from something else, or give "
                'shard="auto"',
            )
    return nodes


def _claims(variables: Mapping[str, str], ranks: _ranks.Ranks) -> list[_Claim]:
    """Statements of launchers about nodes."""
    claims = []
    of_node = _ranks.number(variables, "LOCAL_WORLD_SIZE")
    groups = _ranks.number(variables, "GROUP_WORLD_SIZE")
    name = "GROUP_RANK" if variables.get("GROUP_RANK", "").strip() else "NODE_RANK"
    node = _ranks.number(variables, name)
    if of_node is not None:
        if not of_node or ranks[1] % of_node:
            raise _ranks.wrong(
                f'shard="local": LOCAL_WORLD_SIZE is {of_node}, and {ranks[1]} ranks are not equally many on each '
                "node then",
                "start equally many ranks on each node, unset LOCAL_WORLD_SIZE if it is left from something else, or "
                'give shard="auto"',
            )
        claims.append(_Claim("LOCAL_WORLD_SIZE", ranks[1] // of_node, None))
    if groups:
        claims.append(_Claim("GROUP_WORLD_SIZE", groups, None))
    if node is not None:
        claims.append(_Claim(name, None, node))
    # torchrun numbers nodes as they come, and may run on some of a job's.
    if not variables.get("TORCHELASTIC_RUN_ID") and variables.get("SLURM_STEP_ID", "").strip():
        name = "SLURM_STEP_NUM_NODES" if variables.get("SLURM_STEP_NUM_NODES", "").strip() else "SLURM_NNODES"
        nodes = _ranks.number(variables, name)
        if nodes:
            claims.append(_Claim(name, nodes, None))
            claims.append(_Claim("SLURM_NODEID", None, _ranks.number(variables, "SLURM_NODEID")))
    return claims
