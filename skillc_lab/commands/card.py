"""``skillc tools card``: write the card of an environment or a policy for a model hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
import yaml

from skill_library import load_library
from skillc_gym import __version__
from skillc_gym.envs.registry import described_env, env_spec
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_gym.files import replace_file, require_own
from skillc_lab.cli.command import Command, say
from skillc_lab.report import agent_words, measures, object_or_empty, own_agent, results
from skillc_lab.tables import Table
from trainers.config import current_settings
from trainers.evaluation import PairedReport, require_evaluation_of

_TAGS = ("reinforcement-learning", "gymnasium", "text-environment", "skillc-gym")
_SETTINGS = ("model", "env", "data", "split", "method", "steps", "seed", "library")
_MADE = ("parameters", "vocabulary", "weights_sha256")


@dataclass(frozen=True)
class CardOptions:
    """Write the card of an environment or of a policy, in the form that model hubs read.

    Example: skillc tools card policy runs/mine/policy --evaluation runs/mine/after --out runs/mine/policy/README.md
    """

    what: Annotated[Literal["env", "policy"], tyro.conf.Positional]
    """env or policy."""
    of: Annotated[str, tyro.conf.Positional]
    """Name of the environment, or checkpoint folder of the policy."""
    evaluation: Path | None = None
    """Folder of an evaluation of the policy, for the card's figures."""
    out: Path | None = None
    """File to write; printed if none."""


def _run(options: CardOptions) -> int:
    if options.what == "env" and options.evaluation is not None:
        raise ConfigError("The card of an environment has no evaluation; leave --evaluation out, or write a policy's")
    text = environment_card(options.of) if options.what == "env" else policy_card(Path(options.of), options.evaluation)
    if options.out is None:
        say(text.rstrip("\n"))
    else:
        require_own(options.out, b"---", _TAGS[-1].encode())
        replace_file(options.out, [text.encode("utf-8")])
        say(str(options.out))
    return 0


def environment_card(name: str) -> str:
    """The card of an environment: what it is, how it is made, its splits, task types and skills with their hashes."""
    spec = described_env(name)
    made = f"{module}:{spec.id}" if (module := name.rpartition(":")[0]) else spec.id
    data = ', data="generated"' if spec.warm_start else ""
    facts = {
        "observations and actions": "text",
        "short name": f"`{spec.name}`",
        "longest episode": f"{spec.max_episode_steps} steps" if spec.max_episode_steps else "",
        "splits": ", ".join(f"`{split}`" for split in spec.splits),
        "task types": ", ".join(f"`{kind}`" for kind in spec.task_types),
        "expert": f"`{spec.warm_start.expert}`" if spec.warm_start else "",
    }
    skills = load_library(spec.library).skills if spec.library else ()
    rows = [(f"`{skill.name}`", skill.description, f"`{skill.sha256[:12]}`") for skill in skills]
    return _card(
        {"pretty_name": spec.id, "language": ["en"], "tags": [*_TAGS, spec.name]},
        f"# {spec.id}",
        f"An environment of skillc-gym {__version__} whose agent's skill can be switched on and off per episode.",
        f'```python\nimport gymnasium\nimport skillc_gym\nenv = gymnasium.make("{made}"{data})\n```',
        _table([(fact, said) for fact, said in facts.items() if said]),
        *(["## Skills", _table(rows, "skill", "what for", "SHA-256")] if spec.library else []),
    )


def policy_card(folder: Path, evaluation: Path | None = None) -> str:
    """The card of a policy: how it was made, as its run or ``policy_card.json`` says, and what an evaluation found.

    Raises:
        MissingDataError: There is no such checkpoint, or no such evaluation.
        ConfigError: The evaluation is of other weights.
    """
    if "model_type" not in object_or_empty(folder / "config.json"):
        raise MissingDataError(f"{folder} holds no checkpoint: expected config.json of a transformers model.")
    made = object_or_empty(folder / "policy_card.json")
    own = made.get("run")
    run = current_settings(object_or_empty(folder.parent / "config.json") or (own if isinstance(own, dict) else {}))
    env = str(run.get("env") or _demonstrated_env(made))
    method = str(run.get("method") or ("behaviour-cloning" if made else ""))
    title = " ".join(["A policy", *([f"by {method}"] if method else []), *([f"in {env}"] if env else [])])
    front: dict[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}
    front["tags"] = [*_TAGS, *(name for name in (env, method) if name)]
    found = []
    if evaluation is not None:
        config, report = _evaluated(evaluation)
        require_evaluation_of(folder, evaluation)
        front["model-index"] = [{"name": title, "results": [_result(config, report)]}]
        found = ["## Evaluation", *_evaluation(config, report)]
    how = "Trained" if run.get("method") else "Cloned from demonstrations of an expert" if made else ""
    rows = [(name, f"`{run[name]}`") for name in _SETTINGS if run.get(name) not in (None, "")]
    rows += [(name, f"`{made[name]}`") for name in _MADE if name in made]
    return _card(front, f"# {title}", "## How it was made", f"{how} with skillc-gym." * bool(how), _table(rows), *found)


def _card(front: Mapping[str, Any], *parts: str) -> str:
    text = yaml.safe_dump(dict(front), sort_keys=False, allow_unicode=True)
    return "\n\n".join([f"---\n{text}---", *filter(None, parts)]) + "\n"


def _table(rows: Sequence[Sequence[str]], *heads: str) -> str:
    return Table(heads or ["", ""], rows).markdown() if rows else ""


def _demonstrated_env(made: Mapping[str, Any]) -> str:
    """Where a cloned policy's demonstrations were played; "" if its card does not say so."""
    recipe = made.get("recipe")
    shown = recipe.get("demonstrations") if isinstance(recipe, Mapping) else None
    return str(shown.get("env") or "") if isinstance(shown, Mapping) else ""


def _evaluated(folder: Path) -> tuple[Mapping[str, Any], PairedReport]:
    if not (folder / "report.json").is_file():
        raise MissingDataError(f"{folder} holds no report.json; `skillc evaluate --out {folder}` writes one.")
    return object_or_empty(folder / "config.json"), PairedReport.load(folder / "report.json")


def _result(config: Mapping[str, Any], report: PairedReport) -> dict[str, Any]:
    found, env = report.overall, str(config.get("env", ""))
    kind = env_spec(env.rpartition(":")[2]).id if env else "unknown"  # a stranger's configuration imports no module
    agent = own_agent(report)
    agent = f" ({agent})" if agent else ""
    rates = {"success with": found.sr_with, "success without": found.sr_without, "gap": found.gap}
    return {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"type": kind, "name": f"{env} {config.get('split', '')}".strip()},
        "metrics": [
            {"type": "success_rate", "name": name + agent, "value": round(rate, 4)} for name, rate in rates.items()
        ],
    }


def _evaluation(config: Mapping[str, Any], report: PairedReport) -> list[str]:
    played = (
        f"{report.overall.n} tasks of `{config.get('split', '?')}` (data: `{config.get('data', '?')}`), each with the "
        f"skill and without, from the same seed; panel `{report.panel_sha256[:12]}`, seed {report.seed}. Per cent, "
        "with 95 % intervals."
    )
    warned = [f"**Warning:** {report.warning}"] if report.warning else []
    return [
        f"{played} {agent_words(report)}".strip(),
        *warned,
        *(found.markdown() for found in (results(None, report), measures(report)) if found.rows),
    ]


COMMAND = Command(CardOptions, _run)
