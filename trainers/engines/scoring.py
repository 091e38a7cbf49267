"""Chooses among given replies by their probability under a model, instead of generating one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from skillc_gym.errors import ConfigError
from trainers.base import Sampling, check_values
from trainers.engines.batching import Ints, chunks_by_length, draw
from trainers.engines.in_process import checkpoint_model
from trainers.engines.random import uniforms
from trainers.engines.registry import CheckpointModel, EngineSpec, read_options, refuse_training
from trainers.engines.transformers import TransformersEngine
from trainers.engines.types import Generation, Request

_MOST_NODES = 1024
"""Tokens of one pass over replies: each has a row of logits as wide as the vocabulary."""


@dataclass(frozen=True)
class CommandOptions:
    """What ``engine.NAME=`` sets for an engine that says commands alone; a ConfigError where it cannot be."""

    reply: str = "<action>{command}</action>"
    """What the agent says to give a command; ``{command}`` stands for it."""

    def __post_init__(self) -> None:
        check_values(self, prefix="engine.")
        if "{command}" not in self.reply:
            raise ConfigError(f"engine.reply must hold {{command}}, got {self.reply!r}.")


@dataclass(frozen=True)
class ScoringOptions(CommandOptions):
    """Those of ``engine=scoring``."""

    normalise: Literal["mean", "sum"] = "mean"
    """A score is the log-probability per token ("mean") or the whole ("sum"), by which short commands win."""


@dataclass(frozen=True)
class TokenTree:
    """The inner nodes come first, parents before children; leaves, which nothing follows, need not be computed."""

    tokens: Ints
    """Of each node, shape (m,)."""
    parents: Ints
    """Number of the node before it, -1 for those that follow the prompt; shape (m,)."""
    depths: Ints
    """Tokens between the prompt and the node, shape (m,)."""
    inner: int
    """How many nodes have children."""
    paths: tuple[Ints, ...]
    """The nodes of each reply."""

    @classmethod
    def of(cls, replies: Sequence[Sequence[int]]) -> TokenTree:
        """Builds the tree; equal replies share all of their nodes."""
        numbers: dict[tuple[int, int], int] = {}
        paths = []
        for reply in replies:
            path = [-1]
            for token in reply:
                path.append(numbers.setdefault((path[-1], int(token)), len(numbers)))
            paths.append(path[1:])
        parents, tokens = np.array(list(numbers), dtype=np.int64).reshape(-1, 2).T
        leaf = ~np.isin(np.arange(len(tokens)), parents)
        order = np.argsort(leaf, kind="stable")
        place = np.argsort(order)
        moved = np.where(parents[order] < 0, -1, place[parents[order]])
        ways = tuple(place[path] for path in paths)
        depths = np.zeros(len(order), dtype=np.int64)
        for way in ways:
            depths[way] = np.arange(len(way))
        return cls(tokens[order], moved, depths, int((~leaf).sum()), ways)

    def ancestors(self) -> npt.NDArray[np.bool_]:
        """Which inner nodes lie on the way to each inner node, itself included; shape (inner, inner)."""
        seen = np.eye(self.inner, dtype=bool)
        for node, parent in enumerate(self.parents[: self.inner]):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


class ScoringEngine(TransformersEngine):
    """Ranks the replies of each request by their log-probability behind its prompt.

    The prompt's keys and values are those of the conversation's cache. All replies to it are one tree behind the
    prompt, computed in one pass in which each token sees the prompt and what stands before it in its own reply.

    Greedy sampling takes the most probable reply; otherwise one is drawn from the softmax of the scores divided by the
    temperature, by the request's own random number. Replies longer than a request allows are left out. ``others`` are
    options of :class:`TransformersEngine`.
    """

    def __init__(
        self, model: torch.nn.Module, eos_token_ids: Sequence[int], options: ScoringOptions, **others: Any
    ) -> None:
        super().__init__(model, eos_token_ids, **others)
        self._reply, self._mean = options.reply, options.normalise == "mean"

    def worded(self, commands: Sequence[str]) -> list[str]:
        """The replies that give commands."""
        return [self._reply.replace("{command}", command) for command in commands]

    def _generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        choices = [possible_replies(request) for request in requests]
        trees = [TokenTree.of(replies) for replies in choices]
        # The tree lies behind the prompt in columns of the cache that the next turn's prompt overwrites.
        batch, order = self._begun(requests), self._place(requests)
        self._cache.reserve(len(self._slots), int(batch.lengths.max()) + max(tree.inner for tree in trees) + 1)
        first = self._prefill([batch.prompts[i] for i in order])
        logprobs = self._nodes([trees[i] for i in order], batch.lengths[order], first)
        place = np.argsort(order)
        draws = uniforms(batch.seeds, batch.counters)
        replies = []
        for i, request in enumerate(requests):
            # The chosen reply's keys and values lie elsewhere than a row's tokens do, and are computed again.
            self._known[request.key].tokens = batch.prompts[i]
            own = [logprobs[place[i]][path] for path in trees[i].paths]
            scores = torch.tensor([[each.mean() if self._mean else each.sum() for each in own]])
            chosen = int(draw(scores, draws[i : i + 1], sampling)[0][0])
            replies.append(Generation(list(choices[i][chosen]), own[chosen].tolist()))
        return replies

    def _nodes(self, trees: Sequence[TokenTree], lengths: Ints, first: torch.Tensor) -> list[npt.NDArray[np.float64]]:
        """Log-probability of every node behind its parent, tree by tree; ``first``: the logits behind the prompts."""
        inner = np.array([tree.inner for tree in trees])
        found = [np.zeros(0)] * len(trees)
        # Leaves need no pass of their own: their probability stands in the logits of the node before them.
        for chunk in chunks_by_length(range(len(trees)), np.maximum(inner, 1), _MOST_NODES, self.device):
            rows = np.array(chunk)
            later = self._tree_pass(rows, [trees[row] for row in chunk], lengths[rows]) if inner[rows].any() else None
            for i, row in enumerate(chunk):
                tree = trees[row]
                behind = first[row : row + 1] if later is None else torch.cat([first[row : row + 1], later[i]])
                every = torch.log_softmax(behind, dim=-1)
                parents, tokens = self._tensor(tree.parents + 1), self._tensor(tree.tokens)
                found[row] = every[parents, tokens].double().cpu().numpy()
        return found

    def _tree_pass(self, rows: Ints, trees: Sequence[TokenTree], lengths: Ints) -> torch.Tensor:
        width = max(tree.inner for tree in trees)
        ids, depths = np.zeros((2, len(rows), width), dtype=np.int64)
        seen = np.broadcast_to(np.eye(width, dtype=bool), (len(rows), width, width)).copy()
        for i, tree in enumerate(trees):
            ids[i, : tree.inner], depths[i, : tree.inner] = tree.tokens[: tree.inner], tree.depths[: tree.inner]
            seen[i, : tree.inner, : tree.inner] = tree.ancestors()
        # Nodes lie in columns one after another, but a node's position is its depth: replies share positions.
        columns = lengths[:, None] + np.arange(width)
        return self._masked_forward(rows, ids, columns, lengths[:, None] + depths, seen)

    def _masked_forward(
        self, rows: Ints, ids: Ints, columns: Ints, positions: Ints, seen: npt.NDArray[np.bool_]
    ) -> torch.Tensor:
        """One pass over tokens that stand in other columns than their positions say; see :meth:`_tree_pass`."""
        total = int(columns.max()) + 1
        self._columns = max(self._columns, total)
        where = np.broadcast_to(np.arange(total), (len(rows), total)).copy()
        mask = np.repeat((where < columns[:, :1])[:, None], ids.shape[1], axis=1)
        # Everything before the tree is seen by all of it; within the tree a node sees its ancestors alone.
        for i, own in enumerate(columns):
            mask[i][:, own], where[i, own] = seen[i], positions[i]
        index = self._tensor(rows)
        self._cache.aim(index, index[:, None], self._tensor(columns), total)
        at = self._tensor(positions)
        return self._run(ids, at, self._layered(self._tensor(mask[:, None]), at, self._tensor(where[:, None])))


def possible_replies(request: Request) -> Sequence[Sequence[int]]:
    """The choices that a request has room for; the shortest one if it has room for none."""
    if not request.choices:
        raise ConfigError(
            "engine=scoring chooses among the commands that an environment lists, and was asked for words of its own; "
            "take engine=choosing or engine=transformers."
        )
    return [reply for reply in request.choices if len(reply) <= request.max_tokens] or [min(request.choices, key=len)]


_read = partial(read_options, ScoringOptions, "scoring")


def _for_checkpoint(checkpoint: CheckpointModel) -> ScoringEngine:
    options = _read(checkpoint.settings.engine_options)
    model, autocast = checkpoint_model(checkpoint)
    rows = checkpoint.settings.max_parallel
    return ScoringEngine(model, checkpoint.eos_ids, options, max_rows=rows, autocast=autocast)


ENGINE = EngineSpec(lambda _: refuse_training("scoring"), _for_checkpoint, read_options=_read)
"""Ranks the possible commands by their probability under a checkpoint."""
