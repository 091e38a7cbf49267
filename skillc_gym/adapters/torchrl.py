"""TorchRL: numbered commands with their mask and outcome as columns, and a policy that draws what is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from skillc_gym.errors import needs_extra

with needs_extra("torchrl", "torchrl"):
    import torch
    from tensordict.nn import TensorDictModuleBase
    from torchrl.data import Binary, Unbounded
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv
    from torchrl.envs.gym_like import default_info_dict_reader


def masked_env(env: gymnasium.Env[Any, Any]) -> Any:
    """Wraps an environment with a ``DiscreteCommands`` and a ``SkillInjection`` in it for TorchRL.

    A collector resets without options. For episodes with the skill in it, put a ``SkillCurriculum`` around the others.

    Returns:
        A ``TransformedEnv`` whose tensordicts have ``action_mask``, ``condition`` and ``won``; its ``rollout``
        without a policy draws admissible commands only.
    """
    number = env.get_wrapper_attr("action_space").n
    columns = {
        "action_mask": Binary(number, dtype=torch.int8),
        "condition": Unbounded((), dtype=torch.int64),
        "won": Unbounded((), dtype=torch.float64),
    }
    wrapped = GymWrapper(env)
    wrapped.set_info_dict_reader(_Columns(list(columns), spec=list(columns.values())))
    return TransformedEnv(wrapped, ActionMask())


# TorchRL is not installed where types are checked, so that its classes have none.
class _Columns(default_info_dict_reader):  # type: ignore[misc]
    """TorchRL's own reader takes arrays only."""

    def __call__(self, info: Mapping[str, Any], tensordict: Any) -> Any:
        return super().__call__({name: np.asarray(info[name]) for name in self.keys}, tensordict)


class RandomAdmissible(TensorDictModuleBase):  # type: ignore[misc]
    """Draws evenly from the admissible commands: the policy of a ``Collector``.

    A collector without a policy draws from a copy of the action spec, which never hears of a mask.

    Args:
        generator: Where draws come from; torch's own generator by default.
    """

    in_keys = ("action_mask",)
    out_keys = ("action",)

    def __init__(self, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self._generator = generator

    def forward(self, tensordict: Any) -> Any:
        """Sets ``action``, one-hot, for masks of any batch shape."""
        mask = tensordict["action_mask"]
        flat = mask.reshape(-1, mask.shape[-1])
        drawn = torch.multinomial(flat.float(), 1, generator=self._generator)
        return tensordict.set("action", torch.zeros_like(flat).scatter_(1, drawn, 1).reshape(mask.shape).long())
