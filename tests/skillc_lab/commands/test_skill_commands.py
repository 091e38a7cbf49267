"""``skillc skills``, also its test of others' skills on a model behind a server; learning and converting skills."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from skill_library import Skill, load_library
from skill_library.formats import write_library
from skillc_gym.episodes import write_jsonl
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply
from tests.trainers.toys import episode
from trainers.tracking import read_object, write_json

HEAT = ["take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
KIND = "pick_heat_then_place_in_recep"


@pytest.fixture
def learn(tmp_path, says):
    """Has a model behind a server that replies so write a library, ``l``, from six episodes, three of them won."""
    played = [episode(f"train/{i}", won=i < 3, kind=KIND, actions=HEAT if i < 3 else HEAT[::2]) for i in range(6)]
    words = ["--from", write_jsonl(tmp_path / "t.jsonl", played), "--out", tmp_path / "l"]

    def run(writer: str, note: str, **skills: list[str]) -> str:
        replies = {True: json.dumps({"note": note}), False: json.dumps(skills)}
        with openai_server(lambda messages: replies["one note" in messages[-1]["content"]]) as server:
            said = says(f"learn-skills --model m --writer {writer}", *words, "--engine.base_url", server.base_url)
        assert {request["model"] for request in server.requests} == {"m"}
        return said

    return run


OPENAI = ("model --engine openai", "openai", "openai --engine openai", "trainers.engines.openai:ENGINE")
"""Ways to name the same writer."""


@pytest.mark.parametrize("writer", [*OPENAI, "openai --notes"])
def test_a_model_behind_a_server_takes_notes_first(writer, learn, tmp_path):
    said = learn(writer, "Heat it.", skills=["Heat it first."], mistakes=["Haste."])
    assert "1 skills from 6 episodes" in said
    assert "; 6 notes" in said
    assert load_library(tmp_path / "l").for_task(KIND).text == "Heat it first.\n\nMistake to avoid: Haste."
    notes = [json.loads(line) for line in (tmp_path / "l" / "notes.jsonl").read_text().splitlines()]
    assert len(notes) == 6
    assert notes[0] == {"task_id": "train/0", "task_type": KIND, "won": True, "text": "Heat it."}


@pytest.mark.parametrize(("notes", "more"), [("--notes", {"mistakes": []}), ("--no-notes", {})])
def test_control_characters_of_a_model_cost_nothing_but_themselves(notes, more, learn, tmp_path):
    learn(f"openai {notes}", "Heat\x1b[2J it.\r\n", skills=["Heat\x00 it.\rThen\x1b move it.", "\x00"], **more)
    assert load_library(tmp_path / "l").for_task(KIND).text.startswith("Heat it.\nThen move it.")
    assert (tmp_path / "l" / "notes.jsonl").exists() == (notes == "--notes")


@pytest.mark.parametrize(
    ("env", "train", "test", "split", "kind"),
    [
        ("alfworld", "train/x", "valid_unseen/x", "valid_unseen", KIND),
        ("webshop", "synthetic/1500", "synthetic/499", "test", "shopping"),
        ("coins", "train/easy/02-0000", "test/easy/02-0000", "test", "easy"),
    ],
)
def test_every_world_knows_its_training_tasks_which_alone_teach(env, train, test, split, kind, tmp_path, says):
    def learned(*tasks: str, more: str = "", status: int = 0, env: str = env) -> str:
        file = write_jsonl(tmp_path / "t.jsonl", [episode(task, kind=kind) for task in tasks])
        return says(f"learn-skills --env {env} {more} --from", file, "--out", tmp_path / f"l{more}", status=status)

    foreign = "alfworld" if env == "coins" else "coins"
    assert f"{foreign} has no task type '{kind}': name by --env" in learned(test, status=2, env=foreign)
    said = learned(train, test, status=2)
    assert f"1 episodes are not of the split 'train', such as {test}" in said
    assert "training tasks only" in said
    learned(train, test, more="--split=tset", status=2)
    learned(train, "of no known split")
    learned(test, more=f"--split={split}")
    learned(train, test, more="--split=all")


def test_replies_that_were_paid_for_outlive_their_server(says, tmp_path):
    played = [episode(f"train/{i}", won=i < 3, kind=KIND, actions=HEAT if i < 3 else HEAT[::2]) for i in range(6)]
    file = write_jsonl(tmp_path / "t.jsonl", played)
    words = ["learn-skills --writer openai --model m --out", tmp_path / "l", "--from", file, "--engine.base_url"]
    replies = {True: '{"note": "Heat it."}', False: '{"skills": ["Heat it first."], "mistakes": []}'}

    def refuse(handler, body):
        handler.json(400, {"error": {"message": "no"}})
        return True

    def model(messages):
        return replies["one note" in messages[-1]["content"]]

    with openai_server(model, faults=lambda number, body: refuse if number > 6 else None) as server:
        says(*words, server.base_url, status=2)
    with openai_server(model) as server:
        says(*words, server.base_url)
        assert len(server.requests) == 1  # the six notes were kept
    assert load_library(tmp_path / "l").for_task(KIND).text == "Heat it first."
    assert not (tmp_path / "l.replies.jsonl").exists()


def test_the_conversions_of_the_page_run(says, tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / "skills.md").read_text(encoding="utf-8")
    block = page.partition("## Other forms")[2].partition("```bash\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    for line in block.splitlines():
        says(line.removeprefix("skillc "))
    assert (tmp_path / "from_bank" / "heat" / "SKILL.md").is_file()
    assert {*load_library("from_bank").task_types} == {*load_library("alfworld").task_types}


@pytest.mark.parametrize("library", ["alfworld", "webshop"])
def test_the_shipped_libraries_pass(library, says):
    said = says(f"skills check {library} --model shipped")
    assert said == says(f"skills check {library} --model shipped --env {library}")
    assert "Nothing found" in said
    assert "not checked" not in said
    counts = re.findall(r"^\S+ +(\d+) +(\d+) ", said, re.MULTILINE)
    assert len(counts) == len(load_library(library).skills)
    assert all(int(words) > 10 and int(tokens) > 10 for words, tokens in counts)
    says(f"skills lint {library}")
    says(f"skills diff {library} {library}")
    says("skills diff alfworld webshop", status=1)


@pytest.fixture
def library(tmp_path):
    skills = [Skill("general", "d", ("*",), "Look."), Skill("heat", "d", (KIND,), "Heat it.\nKey step: heat.")]
    return write_library(skills, tmp_path / "mine")


def test_a_check_without_an_environment_says_what_it_left_out(library, says):
    said = says("skills check", library)
    assert "task types without a skill were not checked, since no environment was named; name it by --env" in said
    assert "Nothing found." not in said
    said = says("skills check --env skillc/ALFWorld-v0", library, status=1)
    assert "no skill serves the task type look_at_obj_in_light" in said
    assert "not checked" not in said


@pytest.mark.parametrize(
    ("grade", "read"),
    [
        ("full", "general+heat (full, sha256 6a4e0cb5ca85):\n\nLook.\n\nHeat it.\nKey step: heat.\n"),
        ("minimal", "general+heat (minimal"),
        ("none", "nothing (none)."),
    ],
)
@pytest.mark.parametrize("name", ["heat", KIND])
def test_a_type_is_shown_by_its_full_or_its_short_name(name, grade, read, library, says):
    assert f"{KIND} reads {read}" in says(f"skills check --shows {name} --grade {grade}", library)


def recorded(library, path):
    """Two episodes with the skill, one of them of another type, and one without."""
    on = {"condition": 1, "kind": KIND, "skill": "general+heat", "text": load_library(library).for_task(KIND).text}
    unlike = {**on, "kind": "pick_cool_then_place_in_recep", "skill": "cool", "text": "Cool it."}
    return write_jsonl(path, [episode(**on), episode(**on), episode(**unlike), episode(kind=KIND)])


def test_what_episodes_saw_is_listed_and_held_against_a_library(library, tmp_path, says):
    folder = recorded(library, tmp_path / "run" / "transcripts" / "train-000010.jsonl").parent.parent

    def shown(*words: object, status: int = 0) -> str:
        return " ".join(says("skills shown", folder, *words, status=status).split())

    said = shown()
    assert "heat with general+heat - 2 6 - 6a4e0cb5ca85 " in said
    assert "heat without - - 1 - - - " in said
    assert "4 episodes in 1 file: 3 were shown a text, 1 were shown none." in said
    said = shown("--shows", "cool", "--model", "shipped")
    assert f"cool with cool - 1 2 2 {hashlib.sha256(b'Cool it.').hexdigest()[:12]}" in said
    assert ": Cool it. " in said
    assert "general+heat" not in said
    said = shown(library, "--shows", "heat")
    assert "6a4e0cb5ca85 same" in said
    assert "contradicts its text, and with the skill each is or begins with that of mine." in said
    said = shown(library, "--shows", "cool", status=1)
    assert "the library mine has no such skill for this task type; 1 episodes read this one" in said


# From other forms to a library that an environment can use, and back --------------------------------------------------

CONVERT = "tools convert-skills"


def test_a_bank_becomes_a_library_of_the_environment(tmp_path, says):
    parts = {"heat": "Use the microwave.", "examine": "Switch it on."}
    special = {kind: [{"skill_id": f"{kind}_1", "title": kind, "principle": text}] for kind, text in parts.items()}
    common = [{"skill_id": "gen_1", "title": "Search", "principle": "Look everywhere once."}]
    bank = {"general_skills": common, "task_specific_skills": special, "common_mistakes": []}
    write_json(tmp_path / "bank.json", bank)
    words = [CONVERT, tmp_path / "bank.json", tmp_path / "skills", "--env", "alfworld"]
    assert "examine=TYPE" in says(*words, status=2)
    says(*words, "--types", "examine=look")
    library = load_library(tmp_path / "skills")
    assert library.for_task(KIND).name == "gen_1+heat_1"
    assert library.for_task("look_at_obj_in_light").text.endswith("Switch it on.")
    assert "no type or skill 'examin'" in says(*words, "--types", "examin=look", status=2)
    says(*words[:2], tmp_path / "swapped", "--types", "examine=heat", "heat=examine")
    assert load_library(tmp_path / "swapped").for_task("examine").text.endswith("Use the microwave.")


THEIRS = """
from skill_library import Skill
from skill_library.formats import SkillFormat

read = lambda text: [Skill(f"s{n}", "A line.", ("heat",), line) for n, line in enumerate(text.splitlines())]
FORMAT = SkillFormat("lines", read=read, write=lambda skills: "".join(skill.text + "\\n" for skill in skills))
"""


def test_a_form_of_ones_own_is_one_module(tmp_path, monkeypatch, says):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "their_form.py").write_text(THEIRS)
    (tmp_path / "skills.txt").write_text("Look.\nOpen.\n")
    says(CONVERT, tmp_path / "skills.txt", tmp_path / "skills", "--form", "their_form:FORMAT")
    says(CONVERT, tmp_path / "skills", tmp_path / "back.txt", "--to", "their_form:FORMAT")
    assert (tmp_path / "back.txt").read_text() == "Look.\nOpen.\n"


# skillc skills test: skills of others, of all sorts ------------------------------------------------------------------

TRIED = "--model scripted --engine openai --data generated --split train --max-episode-steps 8"


@pytest.fixture
def server():
    """Its model solves tasks whose prompt has the word "Skill:", and none else."""
    pytest.importorskip("openai", reason="needs the extra openai")
    with openai_server(expert_reply) as running:
        yield running


@pytest.fixture
def skill(tmp_path):
    """A folder of somebody else's: one skill, with test cases."""
    carry = Skill("carry", "Carries things.", ("*",), "Skill: carry it.")
    folder = write_library([carry], tmp_path / "theirs") / "carry"
    cases = [{"id": 1, "prompt": "Carry it.", "task_type": "pick", "assertions": ["It is there"]}]
    write_json(folder / "evals" / "evals.json", {"skill_name": "carry", "evals": cases})
    return folder


def words(server, library, *more: object, kinds: str = "--task-types pick") -> list[object]:
    world = ["--base-url", server.base_url, "--env.generator", json.dumps(ENV_KWARGS["generator"])]
    return ["skills test", library, *TRIED.split(), *kinds.split(), *world, *more]


def test_a_skill_that_helps_passes(server, skill, tmp_path, says, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra report")
    monkeypatch.chdir(tmp_path)
    said = says(*words(server, skill))
    assert "Pass: the skills help by more than 5 points" in said
    assert "the environment graded" in said
    out = tmp_path / "carry-workspace" / "iteration-1"
    benchmark, grades = map(read_object, (out / "benchmark.json", out / "eval-carry-1/with_skill/grading.json"))
    assert benchmark["skill_test"]["verdict"] == "pass"
    assert benchmark["run_summary"]["with_skill"]["tokens"]["mean"] > 0
    assert grades["summary"]["total"] == 4
    assert "carry with scripted: pass" in (out / "report" / "index.html").read_text()
    asked = len(server.requests)
    says(*words(server, skill, "--per-type", 2, "--attempts", 2))
    assert len(server.requests) > asked
    assert (tmp_path / "carry-workspace" / "iteration-2" / "eval-pick").is_dir()


def test_skills_that_hurt_fail_and_those_that_say_nothing_are_neutral(skill, tmp_path, says):
    pytest.importorskip("matplotlib", reason="needs the extra report")

    def misled(chat):
        """Solves what it is shown no skill for."""
        told = "Skill:" in chat[0]["content"]
        return "<action>look</action>" if told else expert_reply([{"role": "user", "content": "Skill:"}, *chat])

    with openai_server(misled) as server:
        hurt = words(server, skill, "--out", tmp_path / "hurt")
        assert "Fail: the skills hurt" in says(*hurt, status=1)
        (skill / "SKILL.md").write_text("---\nname: carry\ndescription: d\n---\nNothing to say.\n")
        assert "holds another evaluation: library_sha256 was" in says(*hurt, status=2)
        assert "Neutral: undecided" in says(*words(server, skill, "--out", tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("evals", "more", "fault"),
    [
        ('{"evals": [{"id": 1, "prompt": "Heat it."}]}', "", "--per-type 8"),
        ('{"evals": [{"id": 1, "task_type": "fly"}]}', "", "'fly'"),
        ("{}", "--margin 5", "margin"),
    ],
)
def test_a_bad_test_is_told_before_anything_is_asked(server, skill, tmp_path, says, evals, more, fault):
    (skill / "evals" / "evals.json").write_text(evals)
    said = says(*words(server, skill, "--out", tmp_path / "out", *more.split()), status=2)
    assert fault in said
    assert "Traceback" not in said
    assert server.requests == []


def test_a_skill_for_one_type_is_tested_on_that_type(server, tmp_path, says):
    def tested(kind: str, status: int) -> str:
        library = write_library([Skill("own", "d", (kind,), "Skill: carry it.")], tmp_path / kind)
        return says(*words(server, library, "--per-type", 1, "--out", out, kinds=""), status=status)

    out = tmp_path / "out"
    assert "it serves fly" in tested("fly", 2)
    assert not out.exists()
    assert "serves pick: tasks of these types" in tested("pick_and_place_simple", 0)
    assert [path.name for path in out.glob("eval-*")] == ["eval-pick"]
