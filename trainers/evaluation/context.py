"""What a model's context limit means for episodes: how long they get, what fits, and what was cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillc_gym.envs.registry import env_spec
from trainers.evaluation.paired_report import PairedReport

__all__ = ["CHARACTERS_PER_TOKEN", "ContextAdvice", "context_advice", "cut_warning"]

CHARACTERS_PER_TOKEN = 3.1
"""A rough figure for subword tokenizers on these environments' texts, with their many numbers and brackets."""


@dataclass(frozen=True)
class ContextAdvice:
    """What a context limit means in one environment.

    Attributes:
        env: Short name of the environment.
        limit: The limit in tokens.
        needs: Tokens that the longest prompts of an episode take, by chat form; empty where nobody has measured.
        text: The advice in words.
    """

    env: str
    limit: int
    needs: Mapping[str, int]
    text: str

    def fits(self, form: str) -> bool:
        """Whether an episode in this form stays within the limit; True where nobody has measured."""
        return self.needs.get(form, 0) <= self.limit


def context_advice(limit: int, env: str = "alfworld", *, steps: int | None = None, reply: int = 60) -> ContextAdvice:
    """Says which chat form of an environment's episodes fits into a context.

    The lengths are those of the environment's real tasks in the default wording with the skill; they are converted
    into tokens by :data:`CHARACTERS_PER_TOKEN`, so they are estimates.

    Args:
        limit: Tokens that the model takes, or ``max_context`` if that is less.
        env: Short name or id of the environment.
        steps: Steps of an episode; the environment's limit by default.
        reply: Tokens of a reply, thoughts included.
    """
    spec = env_spec(env)
    need, count = spec.context, steps or spec.max_episode_steps
    if need is None or count is None:
        return ContextAdvice(spec.name, limit, {}, f"{spec.name}: nobody has measured how long its episodes get.")
    needs = {
        "conversation": _tokens(need.first + count * need.turn) + count * reply,
        "window:5": _tokens(need.window) + reply,
    }
    return ContextAdvice(spec.name, limit, needs, _advice(spec.name, limit, needs, count))


def _advice(env: str, limit: int, needs: Mapping[str, int], steps: int) -> str:
    whole = f"{env}: an episode of {steps} steps takes about {needs['conversation']:,} tokens in the conversation form"
    window = f"a prompt of form=window:5 about {needs['window:5']:,}"
    if needs["conversation"] <= limit:
        return f"{whole}, which fits into {limit:,}."
    if needs["window:5"] <= limit:
        return f"{whole}, more than {limit:,}, and is cut; use form=window:5 ({window}), or fewer max_episode_steps."
    return f"{whole} and {window}; neither fits into {limit:,}: use a model with a longer context, or a shorter window."


def cut_warning(report: PairedReport, max_context: int) -> str:
    """A sentence on episodes that the context cut, and on what to do; "" if there are none."""
    cut, played = report.cuts("context"), len(report.outcomes)
    if not any(cut.values()):
        return ""
    return (
        f"The context (max_context={max_context}) cut {cut['with']} of {played} episodes with the skill and "
        f"{cut['without']} of {played} without; they count as failed. Raise max_context, or use form=window:5."
    )


def _tokens(characters: int) -> int:
    return -(-round(characters / CHARACTERS_PER_TOKEN) // 10) * 10
