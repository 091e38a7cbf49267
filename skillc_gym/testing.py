"""A conformance kit for text environments: inherit it in your tests, or call one function.

Examples:
    >>> class TestMyEnv(TextEnvContract):                     # pytest runs every check
    ...     def make_env(self):
    ...         return gymnasium.make("my/Env-v0")
    >>> check_text_env(lambda: gymnasium.make("my/Env-v0"))   # doctest: +SKIP
"""

from __future__ import annotations

import copy
import itertools
import pickle
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env, data_equivalence

from skill_library import Skill
from skill_library.formats import write_library
from skillc_gym.envs.base import LEFT_OPEN, leaves_words
from skillc_gym.errors import SkillCError
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper

__all__ = ["INFO_KEYS", "TextEnvContract", "check_text_env"]

Env = gymnasium.Env[Any, Any]
Transcript = list[tuple[Any, ...]]

INFO_KEYS: Mapping[str, type] = {
    "task_id": str,
    "task_type": str,
    "goal": str,
    "won": float,
    "task_score": float,
    "action_valid": bool,
}
"""What every info holds, with exact types; and, as a list of strings, admissible_commands or available_actions."""

_INCOMPLETE = " (does _state() hold all that steps change?)"
_ADDED_BY_INJECTION = ("condition", "skill", "skill_sha256", "skill_text", "skill_grade")


class TextEnvContract:
    """The checks, one per method. Override :meth:`make_env`; the rest may be adjusted by class attributes.

    The environment may be wrapped (a step limit, a SkillInjection). Snapshots are asked of ``env.unwrapped``.
    """

    walk_length: ClassVar[int] = 8
    """Steps of the random walks; shorter than the environment's step limit."""
    seeds: ClassVar[tuple[int, ...]] = (0, 7, 2**31)
    """Seeds that are tried."""
    garbage: ClassVar[tuple[str, ...]] = (
        "",
        " ",
        "xyzzy",
        "sing a song",
        "\n",
        "go to",
        "é€😀",
        "x" * 1000,
        "{0}",
        "%s",
    )
    """Actions that are never possible."""
    info_keys: ClassVar[Mapping[str, type]] = INFO_KEYS
    """Keys every info holds, and the types of their values."""

    def make_env(self) -> Env:
        """Makes a new instance; two instances must behave alike."""
        raise NotImplementedError("Override make_env() and return a new environment")

    def teardown_method(self) -> None:
        """Closes what a check has made, after it: pytest calls this, and `check_text_env` does."""
        self._closing.close()

    def test_gymnasium_accepts_it(self) -> None:
        """Gymnasium's own checker passes, and every declared render mode works."""
        env = self._new()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
            check_env(env, skip_render_check=env.spec is None)

    def test_same_seed_same_transcript(self) -> None:
        """Equal seeds give equal observations, rewards, flags and infos: again, and in another instance."""
        env, other = self._new(), self._new()
        for seed in self.seeds:
            first = self._walk(env, seed)
            _same(first, self._walk(env, seed), f"seed {seed} played twice in one instance")
            _same(first, self._walk(other, seed), f"seed {seed} played in two instances")

    def test_unseeded_resets_follow_the_last_seed(self) -> None:
        """reset(seed=s) and then reset() is reproducible: all randomness comes from ``self.np_random``."""
        drawn = []
        for env in (self._new(), self._new()):
            env.reset(seed=self.seeds[0])
            drawn.append([env.reset() for _ in range(5)])
        _same(drawn[0], drawn[1], "five resets without a seed after the same seed")

    def test_infos_hold_the_keys(self) -> None:
        """Every info, at reset and at each step, holds the keys with values of exactly these types."""
        for moment in self._walk(self._new(), self.seeds[0]):
            self._check_info(moment[-1])

    def test_spaces_hold_everything(self) -> None:
        """Observations are text of the space; sampled actions are accepted."""
        env = self._new()
        for seed in self.seeds:
            for observation, *_ in self._walk(env, seed):
                _require(isinstance(observation, str), f"observations are str, got {type(observation).__name__}")
                _require(
                    observation in env.observation_space,
                    f"outside the observation space {env.observation_space}: {observation!r:.200}. Gymnasium's Text "
                    "holds letters and digits only, unless told otherwise; skillc_gym.spaces.Unicode holds any text",
                )
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(5):
            env.step(env.action_space.sample())

    def test_impossible_actions_are_answered(self) -> None:
        """An inadmissible action gets a text answer, is marked in ``action_valid``, changes nothing, never raises."""
        env = self._new()
        for action in self.garbage:
            _, before = env.reset(seed=self.seeds[0])
            observation, reward, terminated, truncated, info = env.step(action)
            _require(isinstance(observation, str) and observation != "", f"no answer to {action!r:.40}")
            _require(info["action_valid"] is False, f"action_valid must be False after {action!r:.40}")
            _require(not terminated and truncated is False, f"{action!r:.40} must not end the episode")
            _require(reward == 0 and info["won"] == 0.0, f"{action!r:.40} must not be rewarded")
            _require(_commands(info) == _commands(before), f"{action!r:.40} changed what is possible")

    def test_listed_actions_are_possible(self) -> None:
        """Every listed action is accepted as valid."""
        env = self._new()
        _, info = env.reset(seed=self.seeds[0])
        task = {"task_id": info["task_id"]}
        for action in _commands(info)[:50]:
            env.reset(seed=self.seeds[0], options=task)
            _require(env.step(action)[-1]["action_valid"] is True, f"listed, but not valid: {action!r}")

    def test_snapshots_are_exact(self) -> None:
        """From every moment's snapshot all goes on as it did: in another instance, from a pickle, and again."""
        core, other = self._core(), self._core()
        for seed in self.seeds:
            kept, actions, moments = self._kept(core, seed, _snapshots)
            for number, (state, frozen) in enumerate(kept):
                other.reset(seed=seed, options={"task_id": moments[0][-1]["task_id"]})
                ways = {"in another instance": (other, pickle.loads(frozen)), "": (core, state), "twice": (core, state)}
                for way, (env, snapshot) in ways.items():
                    played = _replay(env, snapshot, actions[number:])
                    _same(_from(moments, number), played, f"restored {way} after {number} steps{_INCOMPLETE}")

    def test_restoring_does_not_depend_on_what_was_played(self) -> None:
        """A snapshot taken at the start brings back the start, even from another task."""
        core = self._core()
        _, info = core.reset(seed=self.seeds[0])
        state, actions = core.snapshot(), _commands(info)[:1]
        played = _replay(core, state, actions)
        core.reset(seed=self.seeds[0], options={"task_id": core.task_ids[-1]})
        again = _replay(core, state, actions)
        _require(again[-1][-1]["task_id"] == info["task_id"], "restore must bring back the task")
        _same(played, again, "restored after another task")

    def test_copies_play_apart(self) -> None:
        """What a copy plays changes nothing in its original; ``_separate`` is where they part."""
        core, half = self._core(), max(1, self.walk_length // 2)
        ways = filter(None, (copy.deepcopy, getattr(type(core), "copy", None)))
        for copied, seed in itertools.product(ways, self.seeds):
            expected = self._walk(core, seed)[1:]
            _, info = core.reset(seed=seed)
            rng = np.random.default_rng(seed)
            first = self._steps(core, info, rng, half)
            twin = copied(core)
            self._walk(twin, self.seeds[0])
            twin.close()
            *_, last = first[-1][1]
            rest = self._steps(core, last, rng, len(expected) - len(first))
            _same(expected, [outcome for _, outcome in (*first, *rest)], "played beside a copy")

    def test_copies_go_on_as_their_original(self) -> None:
        """A deep copy, made at any moment, plays on as its original does."""
        core = self._core()
        for seed in self.seeds:
            twins, actions, moments = self._kept(core, seed, copy.deepcopy)
            for number, twin in enumerate(twins):
                played = [twin.step(action) for action in actions[number:]]
                _same(moments[number + 1 :], played, f"a copy made after {number} steps{_INCOMPLETE}")
                twin.close()

    def test_task_ids_are_fixed(self) -> None:
        """``task_ids`` is a sorted tuple without repetitions, the same in every instance; each id can be asked for."""
        env, other = self._new(), self._new()
        core: Any = env.unwrapped
        ids = core.task_ids
        _require(isinstance(ids, tuple) and len(ids) > 0, f"task_ids is a non-empty tuple, got {type(ids).__name__}")
        _require(all(isinstance(task_id, str) for task_id in ids), "task ids are strings")
        _require(list(ids) == sorted(set(ids)), "task_ids is sorted and without repetitions")
        _require(ids == getattr(other.unwrapped, "task_ids", None), "task_ids differs between two instances")
        for task_id in {ids[0], ids[len(ids) // 2], ids[-1]}:
            options = {"task_id": task_id}
            _, info = env.reset(seed=3, options=options)
            _require(options == {"task_id": task_id}, "reset must not change the caller's options")
            _require(info["task_id"] == task_id, f"asked for {task_id!r}, got {info['task_id']!r}")
            _require(info["task_type"] == core.task_type_of(task_id), "task_type_of and info disagree")

    def test_options_are_validated(self) -> None:
        """Unknown options and task ids raise an error that names them, and leave a usable environment."""
        env = self._new()
        for options, name in (({"task_id": "no such task"}, "no such task"), ({"tsak_id": "x"}, "tsak_id")):
            try:
                env.reset(seed=0, options=options)
            except SkillCError as error:
                _require(name in str(error), f"the error must name {name!r}: {error}")
            else:
                raise AssertionError(f"reset(options={options}) must raise a SkillCError")
        env.reset(seed=0)

    def test_closing_twice(self) -> None:
        """close() may be called twice, and before any reset."""
        self.make_env().close()
        env = self.make_env()
        env.reset(seed=0)
        env.close()
        env.close()

    def test_skills_off_change_nothing(self) -> None:
        """With its skill switched off, a SkillInjection's transcript is byte-identical to the environment's."""
        for where in ("observation", "info"):
            bare, wrapped = self._pair(where)
            for seed in self.seeds if wrapped is not None else ():
                off = self._walk(wrapped, seed, {"skill": False})
                _same(self._walk(bare, seed), [_without_injection(moment) for moment in off], "skills off")
                _require(all(moment[-1]["condition"] == 0 for moment in off), "condition is 0 with skills off")

    def test_skills_on_stand_in_front(self) -> None:
        """With its skill switched on, the same episode shows the text in front of every observation, in the space."""
        bare, wrapped = self._pair("observation")
        for seed in self.seeds if wrapped is not None else ():
            for plain, shown in zip(self._walk(bare, seed), self._walk(wrapped, seed, {"skill": True}), strict=True):
                text = shown[-1]["skill_text"]
                front = f"{text}\n\n" if wrapped.where == "observation" else ""
                _require(shown[-1]["condition"] == 1 and text != "", "no skill shown with skills on")
                _require(shown[0] == front + plain[0], "the skill must stand in front, the rest be unchanged")
                _require(shown[0] in wrapped.observation_space, "the skill does not fit the observation space")

    @cached_property
    def _closing(self) -> ExitStack:
        return ExitStack()

    def _new(self) -> Env:
        env = self.make_env()
        self._closing.callback(env.close)
        return env

    def _pair(self, where: str) -> tuple[Any, Any]:
        """The environment without and with a SkillInjection; (None, None) if its own injection lies too deep."""
        env, other = self._new(), self._new()
        if isinstance(env, SkillInjection):
            return env.env, other
        if find_wrapper(env, SkillInjection) is not None:
            return None, None
        return env, SkillInjection(other, self._library(other), where=where)

    def _library(self, env: Env) -> str:
        """The folder of a library that has a skill for each of the environment's task types."""
        core: Any = env.unwrapped
        kinds = sorted({core.task_type_of(task_id) for task_id in core.task_ids})
        skills = [
            Skill(f"skill-{place}", "for a test", (kind,), f"Of {kind}: café.") for place, kind in enumerate(kinds)
        ]
        folder = self._closing.enter_context(tempfile.TemporaryDirectory())
        return str(write_library(skills, Path(folder)))

    def _walk(self, env: Env, seed: int, options: dict[str, Any] | None = None) -> Transcript:
        """A random walk as (observation, info) and then what each step returned."""
        observation, info = env.reset(seed=seed, options=options)
        steps = self._steps(env, info, np.random.default_rng(seed), self.walk_length)
        return [(observation, info), *(outcome for _, outcome in steps)]

    def _steps(
        self, env: Env, info: dict[str, Any], rng: np.random.Generator, count: int
    ) -> list[tuple[str, tuple[Any, ...]]]:
        """Plays listed actions with some garbage among them, up to the episode's end, as (action, outcome)."""
        played: list[tuple[str, tuple[Any, ...]]] = []
        for _ in range(count):
            commands = _commands(info)
            pool = list(self.garbage) if not commands or rng.random() < 0.2 else commands
            action = pool[int(rng.integers(len(pool)))]
            outcome = env.step(action)
            played.append((action, outcome))
            info = outcome[-1]
            if outcome[2] or outcome[3]:
                break
        return played

    def _kept(self, core: Any, seed: int, keep: Callable[[Any], Any]) -> tuple[list[Any], list[str], Transcript]:
        """A random walk: what is kept at each moment, from the first to the last; its actions; its moments."""
        moments: Transcript = [core.reset(seed=seed)]
        kept, rng = [keep(core)], np.random.default_rng(seed)
        actions: list[str] = []
        while len(actions) < self.walk_length and not any(moments[-1][2:4]):  # terminated, truncated: not in a reset
            action, outcome = self._steps(core, moments[-1][-1], rng, 1)[0]
            actions.append(action)
            moments.append(outcome)
            kept.append(keep(core))
        return kept, actions, moments

    def _core(self) -> Any:
        # Without wrappers: a step limit would go on counting over restores.
        return self._new().unwrapped

    def _check_info(self, info: Mapping[str, Any]) -> None:
        for key, kind in self.info_keys.items():
            _require(key in info, f"info lacks {key!r}; it has {', '.join(info)}")
            got = type(info[key])
            _require(got is kind, f"info[{key!r}] must be {kind.__name__}, got {got.__name__} ({info[key]!r:.60})")
        listed = info.get("admissible_commands", info.get("available_actions"))
        _require(isinstance(listed, list), "info needs a list admissible_commands or available_actions")
        _require(all(isinstance(command, str) for command in listed), "commands are strings")
        _require(0.0 <= info["task_score"] <= 1.0, f"task_score lies in [0, 1], got {info['task_score']}")


def check_text_env(make_env: Callable[[], Env], contract: type[TextEnvContract] = TextEnvContract) -> None:
    """Runs every check of the kit, or of a subclass of it; AssertionError names the one that failed, and why."""
    kit = contract()
    kit.make_env = make_env  # type: ignore[method-assign]
    for name in (name for name in dir(kit) if name.startswith("test_")):
        try:
            getattr(kit, name)()
        except Exception as error:
            said = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{name}: {said}") from error
        finally:
            kit.teardown_method()


def _replay(core: Any, state: Any, actions: list[str]) -> Transcript:
    restored = core.restore(state)
    _require(isinstance(restored, tuple), "restore returns observation and info of the moment that it restores")
    return [restored, *(core.step(action) for action in actions)]


def _snapshots(core: Any) -> tuple[Any, bytes]:
    """A snapshot as it is, which later steps might change, and frozen."""
    state = core.snapshot()
    return state, pickle.dumps(state)


def _from(moments: Transcript, number: int) -> Transcript:
    """What restoring a moment gives, observation and info, and the moments after it."""
    return [(moments[number][0], moments[number][-1]), *moments[number + 1 :]]


def _require(condition: bool, message: str) -> None:
    # Not the assert statement: it vanishes under python -O, and pytest does not rewrite it in a library.
    if not condition:
        raise AssertionError(message)


def _same(left: list[Any], right: list[Any], what: str) -> None:
    _require(len(left) == len(right), f"{what}: {len(left)} moments against {len(right)}")
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        _require(
            data_equivalence(one, other, exact=True), f"{what}: moment {number} differs: {one!r} against {other!r}"
        )


def _commands(info: Mapping[str, Any]) -> list[str]:
    listed = info.get("admissible_commands") or info.get("available_actions") or []
    return [LEFT_OPEN.sub("red", each) if leaves_words(each, info) else each for each in listed]


def _without_injection(moment: tuple[Any, ...]) -> tuple[Any, ...]:
    info = {key: value for key, value in moment[-1].items() if key not in _ADDED_BY_INJECTION}
    return (*moment[:-1], info)
