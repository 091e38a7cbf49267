"""Banks of texts, and the memories of the skill-augmented methods: what they show, credit, write and drop."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, formats, load_library
from skillc_gym.errors import ConfigError, MissingDataError, TranscriptError, UnknownNameError
from tests.trainers.toys import batch_of, episode
from trainers.advantages import grpo
from trainers.memory import (
    D2SkillMemory,
    DistractedLibrary,
    Entry,
    EvolveRMemory,
    GuidedLibrary,
    RetroAgentMemory,
    Skill1Memory,
    SkillBank,
    SkillRLMemory,
)
from trainers.memory.bank import hindsight_bonus, moving_utility, principle_score
from trainers.memory.base import MemoryTools
from trainers.writers import Draft


def bank_of(*texts: str) -> SkillBank:
    bank = SkillBank()
    for number, text in enumerate(texts):
        bank.add(Draft(text, key=f"goal {number}", sources=("train/x",)), update=number)
    return bank


def test_the_same_text_is_kept_once_per_type_and_names_are_never_given_again():
    bank = bank_of("heat it")
    assert bank.add(Draft("heat it"), update=9).created == 0
    assert bank.add(Draft("heat it", task_type="heat"), update=9).name == "s00002"
    bank.remove("s00002")
    assert bank.add(Draft("c"), update=2).name == "s00003"
    assert ("s00002" in bank, len(bank)) == (False, 2)
    with pytest.raises(UnknownNameError, match="s00001"):
        bank["s00002"]


def test_uses_and_wins_are_counted_per_entry():
    bank, again = bank_of("a", "b"), SkillBank()
    bank.record_use(["s00001", "s00002"], won=True, update=5)
    bank.record_use(["s00001", "evicted"], won=False, update=6)
    assert [(e.uses, e.wins, e.last_used) for e in bank] == [(2, 1.0, 6), (1, 1.0, 5)]
    assert bank.total_uses == 3
    bank.remove("s00002")
    again.load_state_dict(bank.state_dict())
    assert bank.total_uses == again.total_uses == 2


@given(st.lists(st.floats(-1, 1), max_size=8), st.integers(0, 8), st.sets(st.integers(0, 7)))
def test_eviction_keeps_the_best_and_the_protected(utilities, capacity, protected):
    bank = bank_of(*map(str, range(len(utilities))))
    for entry, utility in zip(bank, utilities, strict=True):
        bank.rate(entry.name, utility)
    safe = {f"s{i + 1:05d}" for i in protected}
    before = list(bank)
    gone = bank.keep_best(capacity, lambda entry: entry.utility, protect=lambda entry: entry.name in safe)
    left = {entry.name for entry in bank}
    assert left.isdisjoint(gone)
    assert len(left) == max(min(capacity, len(before)), sum(entry.name in safe for entry in before))
    worst = min((e.utility for e in bank if e.name not in safe), default=1.0)
    assert all(entry.utility <= worst for entry in before if entry.name in gone)


@pytest.mark.parametrize("text", ["heat it — first", "one\u2028two", "one\x85two", "half \ud800", "line\r\nend"])
def test_a_bank_comes_back_from_disk_byte_for_byte_an_entry_a_line(tmp_path, text):
    bank = bank_of(text, "b")
    bank.record_use(["s00001"], won=True, update=1)
    bank.remove("s00002")
    bank.save(tmp_path / "a.jsonl")
    again = SkillBank.load(tmp_path / "a.jsonl")
    again.save(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert list(again) == list(bank)
    assert again.add(Draft("c"), update=2).name == "s00003"
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])["version"] == 1


HEAD = {"format": "skillc-bank", "version": 1, "added": 1}
ENTRY = bank_of("a").state_dict()["entries"][0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("{", ":1 is not a JSON object"),
        ("[" * 100_000, "nested too deep"),
        ("[]", ":1 is not a JSON object"),
        ([{**HEAD, "version": 2}], "version 2"),
        ([{"format": "skillc-bank", "version": 1}], "how many entries"),
        ([HEAD, {"name": "s00001"}], "fields"),
        *(([HEAD, {**ENTRY, name: math.nan}], "no finite number") for name in ("utility", "wins")),
        *(([{**HEAD, "added": added}], "counts fewer") for added in ("x", None)),
        ([HEAD, {**ENTRY, "name": "s00002"}], "takes a name that is taken"),
        *(([HEAD, {**ENTRY, "name": name}], "cannot be called") for name in ("", "none", "heat+cool")),
        *(([HEAD, {**ENTRY, name: -1}], "both count from 0") for name in ("uses", "wins")),
        *(
            ([HEAD, {**ENTRY, name: value}], f"{name} must be")
            for name, value in (("text", 3), ("uses", "many"), ("sources", "t"), ("utility", None))
        ),
    ],
)
def test_a_damaged_file_is_refused_in_words(tmp_path, content, message):
    written = content if isinstance(content, str) else "\n".join(map(json.dumps, content))
    (tmp_path / "bank.jsonl").write_text(written)
    with pytest.raises(TranscriptError, match=message):
        SkillBank.load(tmp_path / "bank.jsonl")


def test_what_is_not_there_is_no_bank_and_what_no_agent_could_read_no_entry(tmp_path):
    with pytest.raises(MissingDataError, match=r"No bank .*nowhere.jsonl"):
        SkillBank.load(tmp_path / "nowhere.jsonl")
    with pytest.raises(ConfigError, match="empty"):
        Draft("  ")
    with pytest.raises(UnknownNameError, match="kind"):
        Draft("a", kind="skil")


def test_the_scores_follow_their_definitions(tmp_path):
    entry = Entry("a", utility=0.4, uses=3, wins=2.0)
    d2skill, retroagent = (kind().start(tools(tmp_path)) for kind in (D2SkillMemory, RetroAgentMemory))
    assert math.isfinite(retroagent.score(0.0, Entry("a"), training=True)), "nobody was shown anything yet"
    d2skill.bank.total_uses = retroagent.bank.total_uses = 10
    bonuses = 0.05 * math.sqrt(math.log(11) / 4), math.sqrt(math.log(10) / 4)
    assert d2skill.score(0.5, entry, training=True) == pytest.approx(0.05 + 0.9 * (0.4 + bonuses[0]))
    assert retroagent.score(0.5, entry, training=True) == pytest.approx(0.35 + 0.3 * (0.4 + bonuses[1]))
    assert principle_score(entry) == pytest.approx(3 / 5)
    assert moving_utility(0.4, 1.0, 0.5) == pytest.approx(0.7)
    assert principle_score(Entry("a")) == 0.5
    # Hindsight compares every rollout with the skill-free ones of its task.
    success = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    bonus = hindsight_bonus(success, ["a", "a", "a", "a", "b"], [True, True, False, False, True])
    assert bonus.tolist() == [0.5, -0.5, 0.5, -0.5, 0.0]


BY_LESSONS = [RetroAgentMemory, Skill1Memory, EvolveRMemory]
METHODS = [D2SkillMemory, SkillRLMemory, *BY_LESSONS]
HEAT = "pick_heat_then_place_in_recep"
WIN = ["go to fridge 1", "take egg 1 from fridge 1", "heat egg 1 with microwave 1"]
WON, LOST = episode(actions=WIN), episode(won=False)
SHOWN_LOST = episode(won=False, condition=1)


def tools(folder: Path, library: str | None = None) -> MemoryTools:
    return MemoryTools(folder, load_library(library) if library else None, lambda chats: ["no JSON" for _ in chats])


def update(memory, *episodes):
    return memory.observe(batch_of(episodes))


def ask(memory, *, training: bool = True, kind: str = "heat", goal: str = "heat some egg", member: int = 0):
    return memory.choose("t", kind, goal, member, training=training)


def planted(options, folder: Path, *drafts: Draft, uses: int = 0, utility: float = 0.0, **changes):
    """A memory that starts from a bank of these drafts, the last of which has so many wins and this utility."""
    bank = SkillBank()
    names = [bank.add(draft, 0).name for draft in drafts]
    bank.record_use(names[-1:] * uses, won=True, update=0)
    bank.rate(names[-1], utility)
    bank.save(folder / "planted.jsonl")
    return options(bank=str(folder / "planted.jsonl"), **changes).start(tools(folder))


def test_entries_of_an_earlier_run_are_as_old_as_the_run_that_begins(tmp_path):
    bank = SkillBank()
    bank.add(Draft("Heat it.", task_type="heat"), 150)
    bank.save(tmp_path / "planted.jsonl")
    (entry,) = D2SkillMemory(bank=str(tmp_path / "planted.jsonl")).start(tools(tmp_path)).bank
    assert (entry.created, entry.last_used) == (0, 0)


@pytest.mark.parametrize("options", METHODS)
def test_what_won_comes_to_be_shown(options, tmp_path):
    memory = options(start_with="nothing").start(tools(tmp_path))
    assert ask(memory).text == ""
    for _ in range(5):
        log = update(memory, WON, *[SHOWN_LOST] * 3)["memory"]
    assert log["size"] >= 1
    shown = ask(memory)
    assert "heat O with microwave 1" in shown.text
    assert shown.name.startswith("s0000")
    assert SkillBank.load(tmp_path / "bank.jsonl")[shown.name.split("+")[0]].sources == ("t",)


@pytest.mark.parametrize("options", METHODS)
def test_a_memory_resumes_where_it_was(options, tmp_path):
    def played(memory, rounds):
        for number in rounds:
            update(memory, episode(actions=WIN[: 2 + number % 2]), SHOWN_LOST)
        return memory

    through, half, resumed = (options().start(tools(tmp_path)) for _ in range(3))
    resumed.load_state_dict(played(half, range(4)).state_dict())
    assert played(resumed, range(4, 7)).state_dict() == played(through, range(7)).state_dict()


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize(("writer", "asked"), [("policy", True), ("none", False)])
def test_what_cannot_be_read_or_is_not_written_leaves_a_bank_as_it_is(options, writer, asked, tmp_path):
    memory = options(writer=writer, start_with="nothing").start(tools(tmp_path))
    for _ in range(5):
        log = update(memory, WON, *[SHOWN_LOST] * 3)["memory"]
    assert (log["size"], log["added"], log["bad_replies"] > 0) == (0, 0, asked)


def test_d2skill_credits_an_entry_by_its_skill_free_siblings(tmp_path):
    memory = planted(D2SkillMemory, tmp_path, Draft("heat it", task_type="heat"))
    update(memory, *[episode(condition=1, skill="s00001")] * 2, LOST, WON)
    (entry,) = memory.bank
    assert (entry.utility, entry.uses, entry.wins) == (pytest.approx(0.5 * (1.0 - 0.5)), 2, 2.0)


def test_d2skills_bonus_vanishes_in_grpo_unless_returns_are_graded_or_it_is_for_one_branch(tmp_path):
    group = batch_of([episode(condition=1), SHOWN_LOST, episode(), LOST, LOST])
    memory = D2SkillMemory(hindsight_weight=1.0).start(tools(tmp_path))
    every = memory.returns(group)
    assert every == pytest.approx(group.returns + group.success - 1 / 3)
    assert grpo(every, group.task) == pytest.approx(grpo(group.returns, group.task), abs=1e-5)
    one = D2SkillMemory(hindsight_for="injected", hindsight_weight=0.5).start(tools(tmp_path)).returns(group)
    assert one - group.returns == pytest.approx([1 / 3, -1 / 6, 0.0, 0.0, 0.0])
    graded = replace(group, returns=np.array([0.9, 0.4, 1.0, 0.0, 0.5]))
    assert abs(grpo(memory.returns(graded), group.task) - grpo(graded.returns, group.task)).max() > 0.1


def test_d2skill_ranks_the_ten_entries_most_like_the_task(tmp_path):
    drafts = [Draft(f"alike {number}", key="heat some egg", task_type="heat") for number in range(10)]
    drafts.append(Draft("useful elsewhere", key="cool a mug", task_type="heat"))
    assert ask(planted(D2SkillMemory, tmp_path, *drafts, utility=1.0)).text == "alike 0"
    everything = planted(D2SkillMemory, tmp_path, *drafts, utility=1.0, candidates=None)
    assert ask(everything).text == "useful elsewhere"


def test_d2skill_reflects_on_failing_groups_only(tmp_path):
    memory, shown = D2SkillMemory().start(tools(tmp_path)), episode(condition=1, actions=WIN)

    def added(*episodes):
        return update(memory, *episodes)["memory"]["added"]

    assert added(shown, WON) == 0
    assert added(shown, SHOWN_LOST, SHOWN_LOST, WON, WON, WON) == 0, "the group did well, if not by the skill"
    assert added(shown, episode(won=False, condition=1, actions=WIN), LOST, LOST) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [D2SkillMemory, *BY_LESSONS])
def test_a_useful_entry_wins_over_planted_useless_ones(options, seed, tmp_path):
    drafts = [Draft(text, key="heat some egg", task_type="heat") for text in ("useless a", "useful", "useless b")]
    memory = planted(options, tmp_path, *drafts, show=1)
    rng, chosen = np.random.default_rng(seed), []

    def played(chance, **told):
        return episode(won=bool(rng.random() < chance), **told)

    for _ in range(120):
        shown = [ask(memory, member=member) for member in range(4)]
        chosen += [each.text for each in shown]
        told = [played(0.8 if each.text == "useful" else 0.2, condition=1, skill=each.name) for each in shown]
        update(memory, *told, *(played(0.2) for _ in range(4)))
    late = chosen[len(chosen) // 2 :]
    assert late.count("useful") > 0.6 * len(late)
    assert ask(memory, training=False).text == "useful"


def test_skillrl_starts_with_the_library_and_adds_where_training_fails(tmp_path):
    memory = SkillRLMemory(review_every=2).start(tools(tmp_path, "alfworld"))
    library = ask(memory, kind=HEAT).text
    assert "General skill" in library
    assert "hot thing" in library
    poor = [episode(won=won, kind=HEAT, actions=WIN) for won in (True, False, False, False)]
    assert [update(memory, *poor)["memory"]["added"] for _ in range(2)] == [0, 1]
    shown = ask(memory, kind=HEAT).text
    assert shown.startswith(f"{library}\n\nSkill: do this in order.")
    assert "Key step" in shown
    for number in range(3):
        memory.bank.add(Draft(f"written {number}", "heat some egg", HEAT), 5)
    assert ask(memory, kind=HEAT).text == shown, "what it writes takes no place of the library's"


def test_skillrl_keeps_what_a_review_reads(tmp_path):
    kept = SkillRLMemory(review_every=9, most_episodes=2)
    memory, again = (kept.start(tools(tmp_path / name)) for name in ("a", "b"))
    update(memory, *(episode(won=won, actions=[f"go to shelf {n}"]) for n, won in enumerate([0, 1, 0, 0, 1, 1])))
    state = memory.state_dict()
    ((_, seen),) = state["seen"].items()
    assert [each["won"] for each in seen["episodes"]] == [1.0, 1.0, 0.0, 0.0]
    assert (seen["won"], seen["lost"]) == (3, 3)
    again.load_state_dict(json.loads(json.dumps(state)))
    assert again.state_dict() == state
    older = {kind: [*each["episodes"], *each["episodes"]] for kind, each in state["seen"].items()}
    again.load_state_dict({**state, "seen": older})
    assert len(again.state_dict()["seen"][next(iter(older))]["episodes"]) == 4


def test_retroagent_rewards_progress_beyond_the_tasks_best(tmp_path):
    memory = RetroAgentMemory().start(tools(tmp_path))
    whole, half, none = (episode(won=False, actions=WIN[:n]) for n in (3, 2, 0))
    batch, lost = batch_of([WON, half, none]), batch_of([replace(each, task_id="new") for each in (half, none)])
    assert memory.returns(batch).tolist() == [1.1, 0.05, 0.0]
    graded = batch_of([WON, replace(whole, task_score=0.3), whole])
    assert memory.returns(graded).tolist() == pytest.approx([1.1, 0.03, 0.0]), "the environment's score goes before"
    memory.observe(batch)
    assert memory.returns(batch).tolist() == pytest.approx([1 + 0.2 / 3, 0.05 / 3, 0.0])
    # GRPO takes out what is the same for all that won; how far lost ones came it leaves.
    assert grpo(memory.returns(batch), batch.task).tolist() != pytest.approx(grpo(batch.returns, batch.task).tolist())
    assert memory.returns(lost).tolist() == [0.05, 0.0]


def test_an_entry_that_retroagent_never_showed_stands_above_one_that_failed(tmp_path):
    memory = RetroAgentMemory(start_with="library").start(tools(tmp_path, "alfworld"))
    assert {entry.utility for entry in memory.bank} == {0.5}
    assert update(memory, WON, WON)["memory"]["added"] == 1, "the same text twice in an update is one addition"
    new = next(entry for entry in memory.bank if entry.created == 1)
    update(memory, episode(won=False, condition=1, skill=new.name))
    assert memory.bank[new.name].utility < new.utility == 0.5


@pytest.mark.parametrize(("options", "published"), [(RetroAgentMemory, 0.4), (D2SkillMemory, 0.7), (Skill1Memory, 0.0)])
def test_a_published_threshold_is_one_of_embeddings(options, published, tmp_path):
    """Words of two goals are seldom as alike as their embeddings: with BM25 nothing would ever be shown in the shop."""
    memory = options().start(tools(tmp_path))
    played = [replace(each, goal="a red mug, price lower than 20 dollars") for each in (WON, SHOWN_LOST, SHOWN_LOST)]
    for _ in range(3):
        update(memory, *played)
    assert ask(memory, goal="a blue and soft sofa, price lower than 90 dollars").text
    assert options(embeddings="encoder").threshold == published
    assert options(least_likeness=0.2).threshold == options(embeddings="encoder", least_likeness=0.2).threshold == 0.2


def test_evolver_keeps_a_shorter_way_beside_a_longer_one(tmp_path):
    longer = ["open fridge", "take egg", "close fridge", "go to microwave", "heat egg", "open fridge", "move egg"]
    memory = EvolveRMemory().start(tools(tmp_path))
    for actions in (longer, [step for step in longer if "fridge" not in step], longer):
        update(memory, episode(actions=actions))
    assert len(memory.bank) == 2


def test_evolver_forgets_principles_that_do_not_help(tmp_path):
    memory, there = EvolveRMemory().start(tools(tmp_path)), []
    name = memory.bank.add(Draft("wrong", task_type="heat"), 0).name
    for _ in range(10):
        update(memory, *[episode(won=False, condition=1, skill=name)] * 8)
        there.append(name in memory.bank)
    assert there == [*[True] * 9, False], "one group does not decide alone"


SHARES = [(0.25, {3, 7}), (0.0, set()), (0.5, {1, 3, 5, 7}), (0.9, set(range(1, 8))), (0.4, {2, 4, 7})]


@pytest.mark.parametrize(("share", "wrong"), SHARES)
def test_a_share_of_the_members_is_shown_another_types_skill_in_training(tmp_path, share, wrong):
    memory = DistractedLibrary(distracted_share=share).start(tools(tmp_path, "alfworld"))
    shown = [ask(memory, kind=HEAT, member=member) for member in range(8)]
    assert {member for member, text in enumerate(shown) if text is not None} == wrong
    others = {text.text for text in shown if text is not None}
    assert load_library("alfworld").for_task(HEAT).text not in others
    assert all("Skill:" in text for text in others)
    assert [ask(memory, kind=HEAT, member=member, training=False) for member in range(8)] == [None] * 8


@pytest.mark.parametrize(("share", "guided"), SHARES)
def test_skill05_guides_a_share_of_a_hard_types_group_in_training_alone(tmp_path, share, guided):
    memory = GuidedLibrary(guided_share=share).start(tools(tmp_path, "alfworld"))

    def shown(training=True):
        return [ask(memory, kind=HEAT, member=m, training=training).name for m in range(8)]

    assert shown() == ["heat"] * 8, "no type is known to be hard yet"
    update(memory, episode(won=False, condition=1, kind=HEAT, skill="heat"))
    assert shown() == ["general+heat" if m in guided else "heat" for m in range(8)]
    assert shown(training=False) == ["heat"] * 8


@pytest.mark.parametrize(("folders", "usual", "guided"), [(("general",), "", "general+"), (("a", "b"), "a&b", "a&b")])
def test_skill05_knows_who_was_guided_where_one_kind_of_skill_is_missing(tmp_path, folders, usual, guided):
    kinds = {"general": "*", "a": "heat", "b": "heat"}
    skills = [Skill(name, "Some words.", (kinds[name],), f"Look first, then {name}.") for name in folders]
    library = formats.write_library(skills, tmp_path / "mine")
    memory = GuidedLibrary(guided_share=0.5).start(tools(tmp_path, str(library)))
    update(memory, episode(won=False, condition=1, kind="heat", skill="heat"))
    assert [ask(memory, member=member).name for member in range(2)] == [usual, guided]
    assert memory.shared_draws == bool(usual), "those who see nothing are no copies of the others"


def test_what_distraction_did_is_recorded(tmp_path):
    memory = DistractedLibrary(distracted_by="blank").start(tools(tmp_path, "alfworld"))
    blank = ask(memory, kind=HEAT, member=3)
    assert set(blank.text.split()) == {"to"}
    misled = [episode(won=won, condition=1, kind=HEAT, skill=blank.name) for won in (True, False)]
    rest = [episode(condition=1, kind=HEAT, skill="general+heat")] * 6
    found = update(memory, *misled, *rest, episode(kind=HEAT))
    assert found == {"distracted_share": 0.25, "distracted_success": 0.5}
    assert update(memory, *rest) == {"distracted_share": 0.0, "distracted_success": None}


@pytest.mark.parametrize("options", BY_LESSONS)
def test_a_full_bank_takes_new_entries(options, tmp_path):
    memory = planted(options, tmp_path, Draft("old", task_type="cool"), uses=1, utility=0.9, bank_capacity=1)
    update(memory, WON)
    assert [entry.created for entry in memory.bank] == [0, 1], "the new one has had no chance, and takes no place yet"
    update(memory, WON)
    assert [entry.created for entry in memory.bank] == [0]


def asking(options, folder: Path, *episodes):
    """A memory whose policy writes, after an update with these episodes; and what the policy was asked each time."""
    asked: list[list[str]] = []

    def write(chats):
        asked.append([chat[1]["content"] for chat in chats])
        return [f'{{"skills": ["Lesson {number}."]}}' for number in range(len(chats))]

    memory = options.start(replace(tools(folder), write=write))
    update(memory, *episodes)
    return memory, asked


@pytest.mark.parametrize("options", BY_LESSONS)
def test_the_policy_is_asked_for_all_lessons_at_once(options, tmp_path):
    memory, (questions,) = asking(options(writer="policy"), tmp_path, WON, WON, WON)
    assert (len(questions), next(iter(memory.bank)).text) == (3, "Lesson 0.")


def test_skillrls_language_model_sees_all_that_a_review_keeps(tmp_path):
    reviewing = SkillRLMemory(writer="policy", review_every=1, start_with="nothing")
    _, ((question,),) = asking(reviewing, tmp_path, *[LOST] * 8)
    assert question.count("Outcome: failure") == 5
