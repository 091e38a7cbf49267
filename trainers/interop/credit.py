"""A method's credit assignment over the records of episodes, whoever has played them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from skillc_gym.curricula.skills import Retirement
from skillc_gym.envs.registry import env_spec
from skillc_gym.episodes import Episode
from skillc_gym.errors import CheckpointError, ConfigError, SkillCError, unknown_name
from trainers.advantages import FloatArray, Returns, RolloutBatch, per_rollout
from trainers.allocation import Trials
from trainers.recipes import Recipe, recipe_in
from trainers.recipes.method import Method
from trainers.recipes.parts.allocation import trials_by_type

Record = Mapping[str, Any] | Episode
_COLUMNS: Mapping[str, str] = {"won": "won", "task_score": "task_score", "reward": "episode_return"}


class GroupCredit:
    """Advantages of a method for groups of episodes with and without the skill.

    An episode is the suite's own, or known by its :meth:`~skillc_gym.adapters.ChatEnv.record`. Every
    :meth:`advantages` is one update: it moves the method's contrast and visit counts. Losses, extra rows and skill
    memory of a recipe are the learner's affair, and have no part in this: a warning names those that a plain policy
    gradient has not.

    Args:
        env: Short name or id of the environment, which says what its task types are.
        preset: The method, by name.
        total_steps: Updates of the whole training, over which the curriculum's stages are laid.
        task_types: The types in a fixed order, for an environment that does not describe itself.
        returns: What is maximised: success, the environment's score, or the sum of rewards.
        **options: Options of the method by flat name: ``omega=0.2``.

    Raises:
        ConfigError: The method's advantages need more than records: tokens, turns or a model's figures; or the
            environment's task types are not known.
        UnknownNameError: An unknown method, option or kind of return.

    Examples:
        >>> credit = GroupCredit("coins", omega=0.5)
        >>> record = {"task_id": "train/easy/02-0001", "task_type": "easy", "condition": 1, "won": 1.0}
        >>> credit.advantages([record, {**record, "won": 0.0}]).round(6).tolist()
        [1.499997, -1.499997]
    """

    def __init__(
        self,
        env: str = "alfworld",
        preset: str = "skillc",
        *,
        total_steps: int = 180,
        task_types: Sequence[str] = (),
        returns: Returns = "won",
        **options: Any,
    ) -> None:
        types = tuple(task_types) or tuple(env_spec(env).task_types)
        if not types:
            raise ConfigError(f"The environment {env!r} does not say what its task types are: give task_types=[...]")
        if returns not in _COLUMNS:
            raise unknown_name("kind of return", returns, _COLUMNS)
        recipe = _from_records(recipe_in(env, preset, options))
        if parts := _left_out(recipe):
            message = f"Advantages alone leave out of {preset}: {'; '.join(parts)}. Have your learner do it, or it is"
            warnings.warn(f"{message} another method.", stacklevel=2)
        self.method = Method(recipe, types, total_steps)
        self.log: dict[str, Any] = {}
        self._returns, self._updates = returns, 0

    def n_plus(self, task_type: str, group_size: int) -> int:
        """How many episodes of the next group of this type should see the skill."""
        # Not with the update: a cut that ranks the types waits for the validation that follows it.
        self.method.advance(self._updates)
        return self.method.n_plus(task_type, group_size)

    def advantages(self, records: Sequence[Record]) -> FloatArray:
        """One update's advantages for the episodes of all its groups, float64[N]; moves :attr:`log`."""
        credit = self.method.credit(batch_of_records(records, self._returns))
        self.log = credit.log
        self._updates += 1
        return per_rollout(credit.advantages.values)

    def validate(self, records: Sequence[Record], step: int) -> tuple[Retirement, ...]:
        """Tells the curriculum what a panel showed, active types in both conditions; returns who retired."""
        batch = batch_of_records(records)
        arms = [trials_by_type(batch, shown) for shown in (True, False)]
        rates = [{kind: own.wins / own.tries for kind, own in arm.items()} for arm in arms]
        errors = {kind: _standard_error(*(arm[kind] for arm in arms)) for kind in arms[0].keys() & arms[1].keys()}
        return self.method.curriculum.update(rates[0], rates[1], step, standard_error=errors)

    def state_dict(self) -> dict[str, Any]:
        """Everything a run needs to go on exactly, as JSON-able values."""
        return {**self.method.state_dict(), "updates": self._updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state bit for bit; a CheckpointError if it is incomplete, or of another method."""
        updates = state.get("updates", 0)
        if type(updates) is not int or updates < 0:
            raise CheckpointError(f"updates must be an integer from 0 on, got {updates!r}")
        method = Method(self.method.recipe, self.method.curriculum.task_types, self.method.total_steps)
        try:
            method.load_state_dict(state)
        except SkillCError:
            raise
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(f"The method's state is damaged ({error!r})") from error
        self.method, self._updates = method, updates


def batch_of_records(records: Sequence[Record], returns: Returns = "won") -> RolloutBatch:
    """Reads episodes, or records of ``task_id``, ``task_type``, ``condition``, ``won`` and the returns' column."""
    episodes = [record for record in records if isinstance(record, Episode)]
    if 0 < len(episodes) == len(records):
        return RolloutBatch.from_episodes(episodes, returns)
    try:
        rows: list[Any] = [*records]
        return RolloutBatch.build(
            returns=[float(row[_COLUMNS[returns]]) for row in rows],
            outcome=[float(row["won"]) for row in rows],
            task=[str(row["task_id"]) for row in rows],
            task_type=[str(row["task_type"]) for row in rows],
            condition=[row["condition"] for row in rows],
            length=[float(row.get("steps", 0)) for row in rows],
            text=[str(row["skill_sha256"]) for row in rows] if all("skill_sha256" in row for row in rows) else (),
        )
    except ConfigError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        columns = ", ".join(dict.fromkeys(("task_id", "task_type", "condition", "won", _COLUMNS[returns])))
        raise ConfigError(
            f"Expected records of episodes with {columns}, as ChatEnv.record() gives them; "
            f"{type(error).__name__}: {error}"
        ) from error


def _from_records(recipe: Recipe) -> Recipe:
    scheme = recipe.advantage
    if scheme.inputs or scheme.whole_trajectories:
        needed = ", ".join(sorted(scheme.inputs)) or "whole trajectories"
        raise ConfigError(
            f"The advantages of preset {recipe.name!r} need {needed}, and records of episodes have none; "
            "train it with skillc train, or take a method such as skillc, grpo, rloo or skill0"
        )
    return recipe


def _left_out(recipe: Recipe) -> list[str]:
    """What the method has beside a policy gradient of these advantages and a skill library that stays as it is."""
    parts = [] if recipe.reads_advantages else ["that no loss of it reads them"]
    for loss in recipe.losses:
        if loss.taught_behind:
            reads = "the" if loss.taught_behind == "with_skill" else "no"
            parts.append(f"the loss {loss.name}, whose teacher reads {reads} skill")
        elif not loss.reads_advantages or loss.acts_on == "rows":
            parts.append(f"the loss {loss.name}")
    parts += [f"the rows {maker.name}" for maker in recipe.rows]
    return parts if recipe.memory.is_fixed else [*parts, f"the memory {recipe.memory.name}"]


def _standard_error(*arms: Trials) -> float:
    """Of the difference of two independent rates, half a win and half a loss added to each so that it is never 0."""
    rates = [((arm.wins + 0.5) / (arm.tries + 1), arm.tries + 1) for arm in arms]
    return math.sqrt(sum(rate * (1 - rate) / tries for rate, tries in rates))
