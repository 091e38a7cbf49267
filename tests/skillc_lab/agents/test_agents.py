"""Each agent at work around a scripted policy: what it shows, what it learns, and what is recorded."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from skill_library import SkillText
from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, ServerError, UnknownNameError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply
from skillc_lab.agents import AGENTS, get_agent
from skillc_lab.agents.shown import ShowNotes
from tests.skillc_gym.adapters.scripted import GENERATOR, expert_command
from tests.trainers.toys import SECRET, TOY_ID, ScriptedEngine, toy_config
from trainers.config import TrainConfig
from trainers.engines.text import FunctionEngine, TextReply
from trainers.evaluation import PairedReport
from trainers.evaluation.policy import PolicyReport, evaluate_policy
from trainers.models import load_tokenizer

SKILL, PLAN = "Skill:", "Plans from earlier tries"
PLAYED = {"model": "scripted", "data": "generated"}
HOUSE = TrainConfig(
    **PLAYED, split="valid_unseen", task_types=("pick",), env_options={"generator": GENERATOR}, max_episode_steps=20
)
GOODS = {"generator": {"seed": 0, "size": 1000}}
SHOP = TrainConfig(**PLAYED, env="webshop", split="test", env_options=GOODS, max_episode_steps=4)


def house(*helps: str):
    """Plays as an expert where the system message holds one of these, and looks for ever otherwise."""

    def reply(messages) -> str:
        if not any(text in messages[0]["content"] for text in helps):
            return format_reply("look")
        return format_reply(expert_command([{"role": "system", "content": "Skill:"}, *messages[1:]]))

    return reply


def shop(messages) -> str:
    """Searches for the instruction, opens the first product and buys it."""
    actions = re.split(r"(?<=\]), ", messages[-1]["content"].rpartition("Possible actions: ")[2])
    if "click[buy now]" in actions:
        return format_reply("click[buy now]")
    codes = [action for action in actions if re.fullmatch(r"click\[b[0-9a-z]{9}\]", action)]
    words = messages[1]["content"].partition("Instruction:")[2].split("\n")[0]
    return format_reply(codes[0] if codes else f"search[{' '.join(re.findall('[a-z]+', words)[:6])}]")


def engine(play, write=None, **asked: list[Any]) -> Any:
    """Plays by one function and writes by another; lists ``questions`` and ``chats`` take down what was asked."""

    async def ask(request) -> TextReply:
        if request.messages[0]["content"].startswith("You help an agent"):
            question = request.messages[1]["content"]
            asked.get("questions", []).append(question)
            return TextReply(write(question), 7, 3)
        asked.get("chats", []).append(request.messages)
        return TextReply(play(request.messages), 5, 2)

    return FunctionEngine(ask)


def play(name: str, player: Any, config: Any = HOUSE, per_type: int | None = 2, **options: Any) -> PolicyReport:
    return evaluate_policy(config, per_type=per_type, engine=player, agent=get_agent(name, **options))


def shown(report: PolicyReport, condition: int) -> list[str]:
    return [episode.skill_text for episode in report.paired.episodes if episode.condition == condition]


def rates(report: PolicyReport) -> tuple[float | None, float | None]:
    return report.paired.overall.sr_with, report.paired.overall.sr_without


def training_tasks(report: PolicyReport) -> list[str]:
    return [task for tasks in report.agent["figures"]["examples"].values() for task in tasks]


def test_zero_shot_shows_the_skill_alone_or_nothing():
    report = play("zero-shot", engine(house(SKILL)))
    assert report.agent["name"] == report.paired.agent == "zero-shot"
    assert shown(report, 0) == ["", ""]
    assert (rates(report), report.trials) == ((1.0, 0.0), None)


def test_react_shows_an_experts_training_episodes_in_both_conditions():
    report = play("react", engine(house("Example 1")), examples=1)
    assert rates(report) == (1.0, 1.0)
    with_, without = shown(report, 1)[0], shown(report, 0)[0]
    assert with_.startswith("General skill:")
    assert with_.endswith(without)
    assert "Example 2" not in without
    assert without.count("<think>") == without.count("</action>") > 2
    assert [episode.skill for episode in report.paired.episodes] == ["general+pick+react", "react"] * 2
    assert without in report.paired.episodes[1].messages[0]["content"]
    assert all(task.startswith("train/") for task in training_tasks(report))


def write_plan(question: str) -> str:
    return '{"plan": "Search everywhere."}'


def test_reflexion_counts_its_trials_and_leaves_the_single_try_alone(tmp_path: Path) -> None:
    questions: list[str] = []
    report = play("reflexion", engine(house(SKILL, PLAN), write_plan, questions=questions), trials=3)
    assert report.trials.success(True) == [1.0, 1.0, 1.0]
    assert report.trials.success(False) == [0.0, 1.0, 1.0]
    assert [len(episodes) for episodes in report.trials.later] == [2, 0]
    assert all("Search everywhere." in episode.skill_text for episode in report.trials.later[0])
    assert {episode.skill for episode in report.trials.later[0]} == {"reflection-1"}
    assert rates(report) == (1.0, 0.0)
    assert len(questions) == 2
    assert (report.usage["writer"]["requests"], report.usage["writer"]["prompt_tokens"]) == (2, 14)
    report.save_all(tmp_path)
    written = json.loads((tmp_path / "trials.json").read_text())
    assert [entry["solved"] for entry in written["without"]] == [0, 2, 2]
    assert written["outcomes"][0]["without_skill"] == 2
    assert PairedReport.load(tmp_path / "report.json") == report.paired
    assert len((tmp_path / "transcripts-trial-2.jsonl").read_text().splitlines()) == 2
    assert json.loads((tmp_path / "agent.json").read_text())["figures"]["plans"] == 2


def test_without_plans_further_trials_are_repetitions_from_other_draws():
    seeds: list[int] = []

    async def ask(request: Any) -> str:
        seeds.append(request.seed)
        return "<think>.</think><action>look</action>"

    config = HOUSE.with_(max_episode_steps=3)
    report = play("reflexion", FunctionEngine(ask), config, 1, trials=2, reflect=False, writer="policy")
    assert report.trials.success(False) == [0.0, 0.0]
    first, second = report.paired.episodes[1], report.trials.later[0][1]
    assert (first.condition, second.condition, first.task_id) == (0, 0, second.task_id)
    assert (second.skill, second.seed) == ("", first.seed)
    assert len(set(seeds)) == 6  # three turns in each of two trials, shared by the conditions


def write_rules(question: str) -> str:
    if '"plan"' in question:
        return write_plan(question)
    if "(none yet)" in question:
        return "ADD: Search all places.\nADD: Look at the walls."
    return "AGREE 1: Search all places.\nREMOVE 2: Look at the walls."


def test_expel_learns_rules_from_pairs_and_successes_and_shows_the_nearest():
    questions: list[str] = []
    policy = engine(house(PLAN, "Rules from earlier tasks:"), write_rules, questions=questions)
    report = play("expel", policy, tasks_per_type=2, retries=1, examples=1)
    assert report.agent["knows"]["rules"] == {"Search all places.": 4}
    assert report.agent["figures"]["gathered"] == {"episodes": 4, "won": 2}
    edits = [question for question in questions if '"plan"' not in question]
    assert ["Compare the failure" in question for question in edits] == [True, True, False]
    text = shown(report, 0)[0]
    assert "1. Search all places." in text
    assert "Example 1" in text
    assert "Example 2" not in text
    assert (rates(report), report.trials) == ((1.0, 1.0), None)
    sources = [episode["task_id"] for episode in report.agent["knows"]["successes"]]
    assert all(task.startswith("train/") for task in sources)


def test_mem0_adds_updates_deletes_and_lets_be():
    def facts(*found: str) -> str:
        return json.dumps({"facts": found})

    def change(operation: str, number: int, text: str = "") -> str:
        return json.dumps({"operation": operation, "number": number, "text": text})

    replies = [facts("Mugs are on shelves.", "Desks have drawers."), change("NOOP", 0), facts("Mugs are on desks.")]
    replies += [change("UPDATE", 1, "Mugs are on shelves and desks."), facts("Drawers are locked."), change("ADD", 0)]
    replies += [facts("Drawers are open."), change("DELETE", 1)]
    policy = engine(house(SKILL, "Facts from"), lambda question: replies.pop(0))
    report = play("mem0", policy, tasks_per_type=4)
    assert report.agent["figures"]["operations"] == {"ADD": 2, "UPDATE": 1, "DELETE": 1, "NOOP": 1}
    assert [entry["text"] for entry in report.agent["knows"]["entries"]] == ["Mugs are on shelves and desks."]
    assert shown(report, 0)[0] == "Facts from earlier tasks:\n- Mugs are on shelves and desks."
    assert [episode.skill for episode in report.paired.episodes] == ["general+pick+s00001", "s00001"] * 2
    assert (report.usage["preparing"]["episodes"], report.usage["all"]["episodes"]) == (4, 4)


@pytest.mark.parametrize("name", AGENTS.names())
def test_every_agent_runs_by_rule_in_the_shop(name):
    chats: list[Any] = []
    writes = {} if name in ("zero-shot", "react") else {"writer": "steps"}
    report = play(name, engine(shop, chats=chats), SHOP, **writes)
    assert len(report.paired.outcomes) == 2
    assert all(episode.turns[-1].action == "click[buy now]" for episode in report.paired.episodes)
    assert report.agent["figures"].get("bad_replies", 0) == 0
    spec = env_spec("webshop")
    learned = json.dumps(report.agent["knows"])
    assert not [task for task in report.paired.tasks if f'"{task}"' in learned and name != "reflexion"]
    assert all(spec.split_of_task(task) == "test" for task in report.paired.tasks)


@pytest.mark.parametrize("name", ["react", "expel", "mem0"])
def test_the_seed_decides_what_is_learned(name):
    writes = {} if name == "react" else {"writer": "steps", "tasks_per_type": 1}
    policy = engine(house(SKILL, PLAN))
    first, again = (play(name, policy, per_type=1, **writes) for _ in range(2))
    assert first.agent == again.agent
    assert first.paired.episodes == again.paired.episodes
    if name == "expel":
        other = play(name, policy, HOUSE.with_(seed=1), per_type=1, **writes)
        assert other.agent["knows"] != first.agent["knows"]


@pytest.mark.parametrize("name", [None, "expel"])
def test_what_plays_in_tokens_plays_alike_in_words(toy_folder: Path, name: str | None) -> None:
    """A policy alone, and within an agent."""
    pytest.importorskip("transformers", reason="needs the train extra")
    config = toy_config(toy_folder, max_reply_tokens=8, max_context=512)

    def reply(text: str) -> str:
        colour = [word for word in text.split() if word in SECRET][-1]
        return SECRET[colour] if "skill text of other" in text else colour

    async def ask(request: Any) -> str:
        return reply(" ".join(message["content"] for message in request.messages))

    agent = get_agent(name, writer="steps", tasks_per_type=2, retries=1) if name else None
    in_tokens, in_words = (
        evaluate_policy(config, per_type=2, engine=player, agent=agent)
        for player in (ScriptedEngine(reply, load_tokenizer(config)), FunctionEngine(ask))
    )
    assert in_tokens.paired.episodes == in_words.paired.episodes
    assert in_tokens.paired.overall.sr_with > in_tokens.paired.overall.sr_without
    assert all(arm.tokens for each in in_tokens.paired.outcomes for arm in (each.with_skill, each.without_skill))
    cost = in_tokens.agent["figures"].pop("cost", {})  # of words usage.json tells it
    assert in_tokens.agent == in_words.agent
    assert (cost.get("episodes"), cost.get("tokens_written")) == ((6, 0) if name else (None, None))
    assert name is None or in_tokens.agent["figures"]["gathered"] == {"episodes": 6, "won": 2}
    assert in_tokens.usage is None


def test_what_is_evaluated_teaches_nothing_and_somebody_must_teach():
    config = HOUSE.with_(split="train")
    report = play("react", engine(house(SKILL)), config, 2, examples=1)
    assert not set(training_tasks(report)) & set(report.paired.tasks)
    with pytest.raises(ConfigError, match="evaluate another split"):
        play("react", engine(house(SKILL)), config, None)
    toy = HOUSE.with_(env=TOY_ID, split="test", task_types=None, env_options={}, library="alfworld")
    with pytest.raises(ConfigError, match=f"{TOY_ID} comes without one"):
        play("react", engine(shop), toy, 1)


def test_an_interrupted_evaluation_goes_on_where_it_stopped(tmp_path):
    asked: list[Any] = []
    inner = engine(house(PLAN, "Rules from earlier tasks:"), write_rules)

    def evaluate(fails_after: int, folder: Path) -> PolicyReport:
        async def ask(request: Any) -> Any:
            asked.append(request)
            if len(asked) > fails_after:
                raise ServerError("gone")
            return await inner.reply(request)

        asked.clear()
        folder.mkdir(exist_ok=True)
        config, agent = HOUSE.with_(max_parallel=1), get_agent("expel", tasks_per_type=1, retries=1)
        return evaluate_policy(config, per_type=1, engine=FunctionEngine(ask), agent=agent, folder=folder)

    whole = evaluate(10**6, tmp_path / "whole")
    in_all = len(asked)
    for fails_after in (in_all // 2, in_all // 3):
        with pytest.raises(ServerError, match="gone"):
            evaluate(fails_after, tmp_path / "parts")
    assert evaluate(10**6, tmp_path / "parts").paired.episodes == whole.paired.episodes
    assert len(asked) < in_all
    again = evaluate(0, tmp_path / "parts")
    assert (again.agent, again.usage, asked) == (whole.agent, whole.usage, [])


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"name": "reflection"}, UnknownNameError, "Did you mean 'reflexion'"),
        ({"name": "reflexion", "trial": 3}, UnknownNameError, "trials"),
        ({"name": "react", "examples": 0}, ConfigError, "examples must be at least 1"),
    ],
)
def test_names_and_options_are_checked(asked, error, says):
    with pytest.raises(error, match=says):
        get_agent(**asked)


def test_an_agent_that_tries_again_wants_single_attempts():
    with pytest.raises(ConfigError, match="leave attempts at 1"):
        evaluate_policy(HOUSE, engine=engine(shop), agent=get_agent("reflexion"), attempts=2)


# What is shown --------------------------------------------------------------------------------------------------------

GAMES = {"data": "generated", "generator": {"games_per_type": 1, "size": "small"}, "task_types": ["pick"]}


def noted(choose: Any, form: str = "conversation") -> Any:
    env = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", **GAMES), "alfworld", where="info")
    return ChatPrompt(ActionFormat(ShowNotes(env, choose)), {"form": form})


@pytest.mark.parametrize("form", ["conversation", "window"])
@pytest.mark.parametrize("skill", [True, False])
def test_the_note_is_in_the_prompt_and_in_the_record(skill: bool, form: str) -> None:
    env = noted(lambda info: SkillText("mine", f"Mind {info['task_type']}."), form)
    _, info = env.reset(seed=0, options={"skill": skill})
    for _ in range(2):
        assert info["condition"] == int(skill)
        assert info["skill"] == ("general+pick+mine" if skill else "mine")
        assert info["skill_text"].endswith("Mind pick_and_place_simple.")
        assert info["skill_text"] in info["messages"][0]["content"]
        assert info["skill_sha256"] == hashlib.sha256(info["skill_text"].encode()).hexdigest()
        info = env.step("look")[-1]


def test_without_a_note_nothing_changes_and_every_episode_is_asked_for_anew_by_its_condition():
    bare = ChatPrompt(ActionFormat(SkillInjection(gymnasium.make("skillc/ALFWorld-v0", **GAMES), where="info")))
    asked = noted(lambda info: SkillText("on", "Sure.") if info["condition"] else None)
    for skill, name in ((True, "general+pick+on"), (False, "")):
        options = {"skill": skill}
        assert noted(lambda info: None).reset(seed=0, options=options) == bare.reset(seed=0, options=options)
        assert asked.reset(seed=0, options=options)[1]["skill"] == name
