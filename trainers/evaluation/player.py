"""The configured policy, whether it answers in tokens or in words: it plays, and it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, check_engine, engine_spec
from trainers.engines.text import TextEngine
from trainers.engines.types import ChoosingEngine, Engine
from trainers.evaluation.journal import Journal
from trainers.evaluation.text_player import TextRollouts, decisive_settings, text_rollouts
from trainers.evaluation.text_speaker import TextSpeaker
from trainers.evaluation.usage import no_price, usage_report, usage_row
from trainers.memory import SkillMemory, skill_selectors
from trainers.models import load_model, within_model, without_bars
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.chats import EngineChat
from trainers.rollout.collect import GroupRollouts
from trainers.session import chat_tokens, load_tokenizer, make_rollouts
from trainers.writers import AnswerChats

__all__ = ["PolicyPlayer", "Rollouts", "TextPlayer", "TokenPlayer", "checkpoint_engine", "policy_player"]

Rollouts = GroupRollouts | TextRollouts
Wrappers = Sequence[Callable[[Any], Any]]


class TokenPlayer:
    """A policy that answers in tokens.

    Args:
        config: The settings.
        engine: Plays instead of the configured one.
        memory: Chooses what skill-injected episodes are shown; None for the environment's library.
    """

    def __init__(self, config: TrainConfig, engine: Engine | None = None, memory: SkillMemory | None = None) -> None:
        self._config, self._memory = within_model(config), memory
        self._chat = chat_tokens(self._config, load_tokenizer(self._config))
        self.max_context: int | None = self._config.max_context
        with without_bars():
            self._engine = engine or checkpoint_engine(self._config, self._chat)
        small = (Path(config.model_path) / "policy_card.json").exists()
        self.writes = not small and not isinstance(self._engine, ChoosingEngine)

    def rollouts(
        self, config: TrainConfig, wrappers: Wrappers = (), label: str = "", *, preparing: bool = False
    ) -> GroupRollouts:
        """Plays a configuration of the same policy.

        Args:
            config: Differs from the player's in the environment at most.
            wrappers: Put around every environment.
            label: Sets episodes apart in the journal.
            preparing: Whether what they use is counted apart.
        """
        within = config.with_(max_context=self._config.max_context)
        rollouts = make_rollouts(within, self._chat, self._engine, wrappers)
        if self._memory is not None:
            rollouts.choose_skills = partial(skill_selectors, self._memory, training=False)
        return rollouts

    def speaker(self, seed: int) -> AnswerChats:
        """The policy as a writer."""
        return EngineChat(self._engine, self._chat, seed=seed, max_context=self.max_context)

    def usage(self) -> None:
        """Nobody counts its tokens for money."""


class TextPlayer:
    """A policy that answers in words.

    Args:
        config: The settings.
        engine: Answers.
        folder: Where ``journal.jsonl`` is kept; None for nowhere.
    """

    max_context: int | None = None
    """Its server knows."""
    writes = True
    """Whether it is a language model."""

    def __init__(self, config: TrainConfig, engine: TextEngine, folder: Path | None) -> None:
        self._config, self._engine = config, engine
        self._journal = None if folder is None else Journal(folder / "journal.jsonl", decisive_settings(config))
        self._made: list[tuple[TextRollouts, bool]] = []
        self._speakers: list[TextSpeaker] = []

    def rollouts(
        self, config: TrainConfig, wrappers: Wrappers = (), label: str = "", *, preparing: bool = False
    ) -> TextRollouts:
        """Plays a configuration of the same policy; as of :class:`TokenPlayer`."""
        made = text_rollouts(config, self._engine, journal=self._journal, wrappers=wrappers, label=label)
        self._made.append((made, preparing))
        return made

    def speaker(self, seed: int) -> AnswerChats:
        """The policy as a writer."""
        speaker = TextSpeaker(self._engine, seed=seed, max_parallel=self._config.max_parallel, journal=self._journal)
        self._speakers.append(speaker)
        return speaker

    def usage(self) -> dict[str, Any]:
        """Tokens and cost by condition; episodes of a preparation and replies of a writer have rows of their own."""
        options = getattr(self._engine, "options", None)
        cost = no_price if options is None else options.cost
        used = {
            kind: [entry for made, own in self._made if own is kind for entry in made.used] for kind in (True, False)
        }
        report = usage_report(used[False], cost)
        if used[True]:
            report["preparing"] = usage_row([usage for _, usage in used[True]], cost)
        if any(speaker.asked for speaker in self._speakers):
            report["writer"] = usage_row([speaker.usage for speaker in self._speakers], cost, episodes=0)
        return report


PolicyPlayer = TokenPlayer | TextPlayer


def policy_player(
    config: TrainConfig,
    engine: Engine | TextEngine | None = None,
    folder: Path | None = None,
    memory: SkillMemory | None = None,
) -> PolicyPlayer:
    """The configured policy.

    Args:
        config: The settings.
        engine: Plays instead of the configured one.
        folder: Where an engine that answers in words keeps its journal; None for nowhere.
        memory: Chooses what skill-injected episodes are shown; None for the environment's library.

    Raises:
        SkillCError: For missing models, extras and unknown names; or the folder has another evaluation's journal.
        ConfigError: A policy that answers in words would have to be shown what a memory chooses.
    """
    check_engine(config.engine, config.engine_options)
    for_text = engine_spec(config.engine).for_text if engine is None else None
    speaks = for_text(config) if for_text else engine
    if not isinstance(speaks, TextEngine):
        return TokenPlayer(config, speaks, memory)
    if memory is not None:
        raise ConfigError(
            f"{config.model} keeps skills of its own, which engine={config.engine!r} cannot show; name an engine that "
            "answers in tokens, or --memory library for the environment's skills"
        )
    return TextPlayer(config, speaks, folder)


def checkpoint_engine(config: TrainConfig, chat: ChatTokens) -> Engine:
    """The configured engine over the configured checkpoint."""
    checkpoint = CheckpointModel(chat.eos_ids, config, lambda: load_model(config))
    return engine_spec(config.engine).for_checkpoint(checkpoint)
