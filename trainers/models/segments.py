"""Attention over a tree of tokens, in memory that grows with its tokens and not with their square.

Rows that begin alike are one tree, laid out in one sequence: each row's own part is a segment of it (on a processor
several, if it is long), and looks at the keys and values on its path, gathered from the segments before it, and at
itself. A mask over all pairs of tokens would be quadratic, and keep away the kernels that take none. Here a segment's
scores are plain products, thrown away after use and made again for the gradient, as flash attention does (Dao et al.,
arXiv 2205.14135), segment for block.

Without segments it is SDPA. Where heads share keys (grouped queries) and a mask is given, SDPA wants the keys once for
each head, and a cache of conversations would be copied at every pass: here the queries of such heads go in as further
tokens of one head instead, which is the same figures from the keys as they lie.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import scaled_dot_product_attention

from skillc_gym.errors import ConfigError

SEGMENTS = "skillc_segments"
"""The name of this attention in a model's configuration; without segments it is SDPA."""
_LONGEST_ON_CPU = 128
"""Tokens of a segment: so few scores above the diagonal are made for nothing, and a segment's fit the cache."""
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """A run of tokens of the sequence, each the parent of the next."""

    start: int
    end: int
    path: torch.Tensor
    """Places of all tokens from the tree's root to the segment's end, its own last; int64 (keys,)."""
    taken: list[int | None] = field(default_factory=list, compare=False)
    """The window of each layer that attended by it, None for one without."""


def segments_of(parents: _Ints, device: torch.device) -> tuple[Segment, ...]:
    """Cuts a tree into segments, by the place of each token's parent, which stands before it; -1 for a root."""
    starts = [0, *(1 + np.flatnonzero(parents[1:] != np.arange(len(parents) - 1))).tolist()]
    if device.type == "cpu":
        starts = [cut for start, end in pairwise([*starts, len(parents)]) for cut in range(start, end, _LONGEST_ON_CPU)]
    paths: list[_Ints] = []
    for start, end in pairwise([*starts, len(parents)]):
        above = int(parents[start])
        # The path of the segment that holds the parent, up to the parent, which lies so far before that segment's end.
        holder = bisect_right(starts, above) - 1
        before = paths[holder][: len(paths[holder]) + above + 1 - starts[holder + 1]] if above >= 0 else parents[:0]
        paths.append(np.concatenate([before, np.arange(start, end)]))
    cuts = zip(pairwise([*starts, len(parents)]), paths, strict=True)
    return tuple(Segment(start, end, torch.from_numpy(path).to(device)) for (start, end), path in cuts)


def attention_kinds(model: Any) -> set[str]:
    """The kinds of a model's layers, none where it does not say; a ConfigError if some do something else."""
    kinds = set(getattr(text_config(model), "layer_types", None) or ())
    recurrent = {"recurrent"} if getattr(model, "_is_stateful", False) else set()
    if strange := kinds.difference({"full_attention", "sliding_attention"}) or recurrent:
        raise ConfigError(
            f"This model has layers of type {sorted(strange)}, which engine=transformers keeps no keys and values of "
            "and share_prefixes cannot share; generate with engine=vllm, and leave share_prefixes out."
        )
    return kinds


def sliding_window(model: Any) -> int | None:
    """Width of the model's sliding attention layers, if any; errors as of :func:`attention_kinds`."""
    kinds, width = attention_kinds(model), getattr(text_config(model), "sliding_window", None)
    # Some families have a window and no list of layers: then all layers have it.
    return int(width) if width and (not kinds or "sliding_attention" in kinds) else None


def text_config(model: Any) -> Any:
    """The configuration of a model, or of its part that reads text."""
    return model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config


def attend_by_segments(model: Any) -> None:
    """Lets a model of transformers take ``segments`` in its forward pass; without them its figures stay the same."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    plain = getattr(model, "module", model)
    plain = plain.get_base_model() if hasattr(plain, "peft_config") else plain
    # A model may come from another process, where its attention was known.
    AttentionInterface.register(SEGMENTS, _attention)
    AttentionMaskInterface.register(SEGMENTS, sdpa_mask)
    if plain.config._attn_implementation != SEGMENTS:
        plain.set_attn_implementation(SEGMENTS)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    segments: Sequence[Segment] | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if segments is None:
        if attention_mask is not None and _foldable(query, key, attention_mask, others):
            return _folded(query, key, value, attention_mask, scale=scaling, dropout_p=dropout), None
        options = {"scaling": scaling, "dropout": dropout, "sliding_window": sliding_window, **others}
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return found
    strange = [name for name in ("softcap", "s_aux", "position_bias") if others.get(name) is not None]
    if dropout or strange:
        raise ConfigError(f"share_prefixes knows no attention with {', '.join(strange) or 'dropout'}; leave it out.")
    if torch.is_autocast_enabled(query.device.type):
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    heads, kept = query.shape[1], key.shape[1]
    # Heads that share keys lie beside each other: (kept heads, heads each, tokens, width).
    grouped = query[0].reshape(kept, heads // kept, *query.shape[2:])
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    segments[0].taken.append(sliding_window)
    apply: Any = _BySegments.apply
    seen: torch.Tensor = apply(grouped, key[0], value[0], segments, scale, sliding_window)
    return seen.flatten(0, 1).transpose(0, 1)[None].contiguous(), None


def _foldable(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor, others: Mapping[str, Any]) -> bool:
    known = not any(others.get(name) is not None for name in ("softcap", "s_aux", "position_bias", "cache"))
    return known and mask.shape[1:3] == (1, query.shape[2]) and key.shape[1] < query.shape[1]


def _folded(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, **options: Any
) -> torch.Tensor:
    """SDPA with the queries of heads that share keys as tokens of one head; (rows, tokens, heads, width)."""
    rows, heads, tokens, width = query.shape
    sharing = heads // key.shape[1]
    asking = query.reshape(rows, heads // sharing, sharing * tokens, width)
    # A processor's kernel of SDPA takes twice as long as its products of matrices where numbers are narrow. With
    # gradients the kernel stays: it keeps no scores.
    narrow = query.device.type == "cpu" and query.element_size() < 4 and mask.dtype == torch.bool
    attend = _by_products if narrow and not query.requires_grad else scaled_dot_product_attention
    seen = attend(asking, key, value, attn_mask=mask.repeat(1, 1, sharing, 1), **options)
    # Not a view: kernels of a GPU lay their result out as they like.
    return seen.reshape(rows, heads, tokens, -1).transpose(1, 2).contiguous()


def _by_products(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    attn_mask: torch.Tensor,
    scale: float | None,
    **_nothing: Any,
) -> torch.Tensor:
    """SDPA by two products and a softmax; scores lie in memory, in the queries' own precision."""
    scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.mT
    # Finite, so that a row of padding which sees nothing gives numbers, too.
    seen: torch.Tensor = scores.masked_fill_(~attn_mask, torch.finfo(scores.dtype).min).softmax(-1) @ value
    return seen


class _BySegments(torch.autograd.Function):
    """Shapes: queries (k, h, tokens, width), keys and values (k, tokens, width)."""

    @staticmethod
    def forward(  # noqa: PLR0917 - called by autograd
        ctx: Any,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        segments: Sequence[Segment],
        scale: float,
        window: int | None,
    ) -> torch.Tensor:
        out = queries.new_empty(*queries.shape[:-1], values.shape[-1])  # which need not be as wide as keys
        for each in segments:
            path = each.path
            seen = _probabilities(queries, keys.index_select(1, path), each, scale, window) @ values.index_select(
                1, path
            )
            own = out[:, :, each.start : each.end]
            own.copy_(seen.view(own.shape))
        ctx.save_for_backward(queries, keys, values, out)
        ctx.options = segments, scale, window
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of softmax attention; probabilities are made anew."""
        queries, keys, values, out = ctx.saved_tensors
        segments, scale, window = ctx.options
        (above,) = gradients
        of_queries = torch.empty_like(queries)
        # Many segments add to a token's share: summed in float32.
        of_keys, of_values = torch.zeros_like(keys, dtype=torch.float32), torch.zeros_like(values, dtype=torch.float32)
        for each in segments:
            own, path = slice(each.start, each.end), each.path
            gradient, asking, seen = above[:, :, own].flatten(1, 2), queries[:, :, own], keys.index_select(1, path)
            shares = _probabilities(queries, seen, each, scale, window)
            of_values.index_add_(1, path, (shares.mT @ gradient).float())
            towards = (gradient.float() * out[:, :, own].flatten(1, 2).float()).sum(-1, keepdim=True)
            # In place: a pass over a segment's scores costs as much as a product.
            of_scores = (gradient @ values.index_select(1, path).mT).float().sub_(towards)
            of_scores = of_scores.mul_(shares).mul_(scale).to(queries.dtype)
            of_queries[:, :, own] = (of_scores @ seen).view(asking.shape)
            of_keys.index_add_(1, path, (of_scores.mT @ asking.flatten(1, 2)).float())
        return of_queries, of_keys.to(keys.dtype), of_values.to(values.dtype), None, None, None


def _probabilities(
    queries: torch.Tensor, seen: torch.Tensor, segment: Segment, scale: float, window: int | None
) -> torch.Tensor:
    """What each of a segment's tokens sees of its path, whose keys are given; shape (k, h x tokens, keys)."""
    own, path = segment.end - segment.start, segment.path
    asking = queries[:, :, segment.start : segment.end]
    scores = (asking.flatten(1, 2) @ seen.mT).float().mul_(scale)
    # A token sees what stands before it on the path: of its own segment the lower triangle, and all before that.
    first = len(path) - own if window is None else 0
    place = torch.arange(len(path) - own, len(path), device=seen.device)[:, None]
    other = torch.arange(first, len(path), device=seen.device)
    hidden = other > place if window is None else (other > place) | (other <= place - window)
    scores.view(*asking.shape[:3], len(path))[..., first:].masked_fill_(hidden, -torch.inf)
    return scores.softmax(-1).to(queries.dtype)
