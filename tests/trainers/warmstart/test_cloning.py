"""Policies that are cloned, small ones and language models: what is imitated, of which words, and to the same end."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("peft", reason="needs the train extra")

import peft
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    PreTrainedTokenizerFast,
)

from skillc_gym.envs.registry import env_spec, warm_started
from skillc_gym.envs.warm_start import PLAIN_WORDS, Spelling
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from tests.byte_tokenizers import byte_tokenizer
from tests.trainers.conftest import make_model
from trainers.base import shipped_policy
from trainers.config import TrainConfig
from trainers.evaluation.policy import evaluate_policy
from trainers.rollout.chat_tokens import ChatTokens
from trainers.warmstart import CloningConfig, PolicyRecipe, PolicySize, make, make_policy
from trainers.warmstart.cloning import (
    CLONING_FILE,
    IGNORED,
    ProgressFile,
    TokenisedDialogue,
    clone,
    reply_loss,
    tokenise_conversation,
)
from trainers.warmstart.demonstration import DemonstrationConfig
from trainers.warmstart.make import CARD
from trainers.warmstart.policy import SPECIAL, UNKNOWN, build_model, build_tokenizer, require_sayable, vocabulary, words

WORDS = ["agent", "see", "take", "mug", "plate", "nothing", "look"]
SIZE = PolicySize(layers=1, width=32, heads=2, feed_forward=32)
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def chatml_tokenizer() -> Any:
    return byte_tokenizer(CHATML, ["<|im_start|>", "<|im_end|>"], pad_token="<|im_end|>")


def chat(thing: str) -> list[dict[str, str]]:
    """Two turns, the first of which takes a thing."""
    said = ["agent", f"see {thing}", f"<action> take {thing} </action>", "nothing", "<action> look </action>"]
    roles = ["system", "user", "assistant", "user", "assistant"]
    return [{"role": role, "content": content} for role, content in zip(roles, said, strict=True)]


@pytest.mark.parametrize(
    ("tokenizer", "end"), [(build_tokenizer(WORDS), " <|end|>"), (chatml_tokenizer(), "<|im_end|>")]
)
def test_replies_are_imitated_to_their_end_and_slips_neither_imitated_nor_predicted(tokenizer: Any, end: str) -> None:
    plain, slipped = (tokenise_conversation(ChatTokens(tokenizer), chat("mug"), slips) for slips in ((), {0}))
    assert plain.ids == slipped.ids
    assert all(label in (IGNORED, token) for label, token in zip(plain.labels, plain.ids, strict=True))
    rendered = tokenizer.apply_chat_template(chat("mug"), tokenize=True, return_dict=False)
    assert tokenizer.decode(plain.ids) == tokenizer.decode(rendered).removesuffix("\n")
    took, looked = f"<action> take mug </action>{end}", f"<action> look </action>{end}"
    replies, unspoilt = ([label for label in item.labels if label != IGNORED] for item in (plain, slipped))
    assert tokenizer.decode(unspoilt) == looked
    left_out = [token for token, slip in zip(slipped.ids, slipped.slips, strict=True) if slip]
    assert tokenizer.decode(left_out) == took
    assert replies == [*left_out, *unspoilt]
    assert not any(plain.slips)
    assert len(tokenise_conversation(ChatTokens(tokenizer), chat("mug"), max_length=9).ids) == 9


def test_cloning_learns_to_copy_and_is_deterministic():
    tokenizer = build_tokenizer(WORDS)
    data = [tokenise_conversation(ChatTokens(tokenizer), chat(thing)) for thing in ("mug", "plate")] * 8
    config = CloningConfig(batches=60, batch_episodes=8, learning_rate=1e-2)
    models = [build_model(tokenizer, SIZE) for _ in range(2)]
    runs = [clone(model, data, config, pad_token_id=tokenizer.pad_token_id) for model in models]
    assert runs[0] == runs[1]
    assert runs[0][-1] < 0.1 < 1.0 < runs[0][0]
    slipped = [tokenise_conversation(ChatTokens(tokenizer), chat("mug"), range(9))] * 2
    config = CloningConfig(batches=2, batch_episodes=1, learning_rate=1e-2)
    assert clone(models[0], slipped, config, pad_token_id=tokenizer.pad_token_id) == [0.0, 0.0], "no mean of nothing"


def test_a_cloning_that_diverges_ends_in_words():
    tokenizer = build_tokenizer(WORDS)
    data = [tokenise_conversation(ChatTokens(tokenizer), chat("mug"))] * 8
    config = CloningConfig(batches=4, batch_episodes=2, learning_rate=1e30)
    with pytest.raises(ConfigError, match="gradient of batch 2 is not finite; take a lower learning_rate"):
        clone(build_model(tokenizer, SIZE), data, config, pad_token_id=tokenizer.pad_token_id)


def test_a_model_that_scales_its_logits_is_cloned_with_them():
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = GraniteForCausalLM(GraniteConfig(vocab_size=9, logits_scaling=8.0, initializer_range=0.5, **sizes))
    ids = torch.tensor([[1, 2, 3, 4]])
    data = [TokenisedDialogue(ids[0].tolist(), ids[0].tolist(), [False] * 4)]
    told = reply_loss(model, data, pad_token_id=0, batch_episodes=1)
    assert told == pytest.approx(float(model(input_ids=ids, labels=ids).loss), abs=1e-5)


def test_what_layers_drop_follows_from_the_seed():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1, n_positions=16))  # drops a tenth
    data = [TokenisedDialogue([1, 2, 3], [IGNORED, 2, 3], [False] * 3)]
    config = CloningConfig(batches=3, batch_episodes=1)
    first, second = (clone(copy.deepcopy(model), data, config, pad_token_id=0) for _ in range(2))
    assert first == second


def asked(
    out: Path, shown: dict[str, Any] | None = None, cloning: dict[str, Any] | None = None, **fields: Any
) -> MakePolicyOptions:
    shown, cloning = {"episodes": 8, **(shown or {})}, {"batches": 6, "batch_episodes": 2, **(cloning or {})}
    return MakePolicyOptions(Shown(**shown), Cloning(**cloning), out=out / "policy", **fields)


def test_cloning_attends_without_plans_for_each_shape(tmp_path: Path, cudnn: Any) -> None:
    make_policy(asked(tmp_path, {"episodes": 2, "max_steps": 2}, {"batches": 1}).recipe(), tmp_path / "policy")
    assert not cudnn.cudnn_sdp_enabled()


def test_an_interrupted_cloning_goes_on_to_the_same_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, out, steps = asked(tmp_path, {"max_steps": 5}).recipe(), tmp_path / "policy", list[int]()
    play_all = make._play_all

    def interrupt(phase: str, done: int, total: int, loss: float) -> None:
        steps.extend([done] * (phase == "cloning"))
        if steps == [1, 2, 3]:
            raise KeyboardInterrupt

    monkeypatch.setattr(make, "ProgressFile", lambda path, key: ProgressFile(path, key, every=2))
    with pytest.raises(KeyboardInterrupt):
        make_policy(recipe, out, progress=interrupt)
    begun = (out / CLONING_FILE).read_bytes()
    with pytest.raises(ConfigError, match="begun with other settings"):
        make_policy(replace(recipe, seed=1), out, progress=interrupt)
    (out / CLONING_FILE).write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="remove it to begin anew"):
        make_policy(recipe, out, progress=interrupt)
    assert (out / CLONING_FILE).read_bytes() == b"half a file", "it is not taken away unasked"
    (out / CLONING_FILE).write_bytes(begun)
    with monkeypatch.context() as patch:  # the data behind the path have changed
        patch.setattr(make, "_play_all", lambda recipe, *more: play_all(replace(recipe, seed=1), *more))
        with pytest.raises(ConfigError, match="other demonstrations"):
            make_policy(recipe, out, progress=interrupt)
    gone_on = make_policy(recipe, out, progress=interrupt)
    assert steps == [1, 2, 3, 3, 4, 5, 6], "the third step was not written down yet, and nothing else was computed"
    assert not (out / CLONING_FILE).exists()
    assert gone_on == make_policy(recipe, tmp_path / "at-once", keep_progress=True)
    assert (tmp_path / "at-once" / CLONING_FILE).exists(), "whoever has more to do takes it away"


def test_a_cloning_that_is_interrupted_at_its_end_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, out = asked(tmp_path, {"max_steps": 5}, {"batches": 3}).recipe(), tmp_path / "policy"
    with monkeypatch.context() as patch:
        patch.setattr(make, "write_card", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make_policy(recipe, out)
    assert (out / "model.safetensors").exists()
    assert make_policy(recipe, out) == make_policy(recipe, tmp_path / "at-once")


def test_a_policy_goes_on_from_another_with_its_vocabulary(tmp_path):
    cloning = {"batches": 2, "batch_episodes": 4, "learning_rate": 1e-4, "start": "shipped"}
    shown = {"episodes": 24, "error_rate_without_skill": 1.0, "error_rate_with_skill": 1.0}
    recipe = asked(tmp_path, shown, cloning).recipe()
    careless = warm_started("alfworld")[1].error_rates
    assert recipe.demonstrations.error_rates_without_skill == dict.fromkeys(careless, 1.0)
    card = make_policy(recipe, tmp_path / "policy")
    written = json.loads((tmp_path / "policy" / CARD).read_text())
    # Cards of earlier versions lack these.
    del written["recipe"]["lora_rank"], written["recipe"]["demonstrations"]["thoughts"]
    (tmp_path / "policy" / CARD).write_text(json.dumps(written))
    assert make_policy(recipe, tmp_path / "policy") == card
    narrower = {**recipe.demonstrations.env_kwargs, "task_types": ["heat"]}
    for other in (
        replace(recipe, seed=recipe.seed + 1),
        replace(recipe, demonstrations=replace(recipe.demonstrations, env_kwargs=narrower)),
        replace(recipe, mixture=recipe.demonstrations),
    ):
        with pytest.raises(ConfigError, match="policy of another recipe"):
            make_policy(other, tmp_path / "policy")
    for name in ("run/metrics.jsonl", "skills/one/SKILL.md"):
        folder = tmp_path / name.partition("/")[0]
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match="holds something else"):
            make_policy(recipe, folder)
    (tmp_path / "run" / CARD).write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        make_policy(recipe, tmp_path / "run")
    with pytest.raises(ConfigError, match="slips alone"):
        make_policy(replace(recipe, demonstrations=replace(recipe.demonstrations, slips=1.0)), tmp_path / "slips")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no GPU"):
            make_policy(recipe, tmp_path / "other", device="cuda")
    own, shipped = ((folder / "tokenizer.json").read_bytes() for folder in (tmp_path / "policy", shipped_policy()))
    assert own == shipped
    assert card["start_sha256"] != card["weights_sha256"]
    # A fresh policy of two batches predicts nothing; one that goes on predicts its demonstrations nearly surely.
    assert card["loss_first"] < 0.1
    won = [rates[arm] for rates in card["demonstrator_success"].values() for arm in ("with", "without")]
    assert won == [0.0] * 12


def test_generated_rooms_are_mixed_into_those_of_a_data_set(tmp_path):
    games = tmp_path / "games"
    assert skillc(["tools", "make-games", "--out", str(games), "--games-per-type", "3"]) == 0
    shown = {"episodes": 24, "max_steps": 12, "slips": 0.1, "generated_share": 0.5}
    recipe = asked(tmp_path, shown, {"batches": 1}, data=str(games)).recipe()
    assert recipe.mixture is not None
    assert (recipe.mixture.max_steps, recipe.mixture.slips) == (12, 0.1)
    shown = [demo.task_id for demo in make._play_all(recipe, env_spec("alfworld").chat_format("compact"), None)]
    assert len(shown) == 24
    assert len(set(shown[12:])) == 12
    assert not set(shown[:12]) & set(shown[12:])
    assert make_policy(recipe, tmp_path / "policy")["recipe"]["mixture_share"] == 0.5


@pytest.mark.parametrize(
    ("shown", "changed", "error", "fault"),
    [
        ({}, {"max_length": 4}, ConfigError, "max_length=4 cuts off all replies"),
        ({}, {"start": "."}, MissingDataError, "holds no checkpoint"),
        ({}, {"start": "org/model"}, MissingDataError, "org/model.*could not be fetched"),
        ({}, {"lora_rank": 4}, ConfigError, "name one as start"),
        ({"error_rate_without_skill": 1.5}, {}, ConfigError, r"between 0 and 1, got 1\.5"),
        ({"generated_share": 0.5}, {}, ConfigError, "those of a data set; got data='generated'"),
        ({}, {"mixture_share": 1.5}, ConfigError, r"mixture_share must be at most 1, got 1\.5"),
        ({}, {"mixture_share": 0.5}, ConfigError, "the recipe has no mixture"),
    ],
)
def test_what_makes_no_policy_is_refused(shown, changed, error, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=fault):
        make_policy(replace(asked(tmp_path, shown).recipe(), **changed), tmp_path / "policy")
    assert not (tmp_path / "policy" / "model.safetensors").exists()


# Language models with a chat template of their own --------------------------------------------------------------------


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with tied embeddings, and fewer heads for keys than for queries."""
    folder, tokenizer = tmp_path_factory.mktemp("chatml"), chatml_tokenizer()
    shape = {"hidden_size": 24, "num_attention_heads": 3, "max_position_embeddings": 8192, "initializer_range": 0.02}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model = make_model(len(tokenizer), layers=1, kv_heads=1, tie_word_embeddings=True, **shape, **ends)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def recipe_of(start: Path, **cloning: Any) -> PolicyRecipe:
    options = {"learning_rate": 1e-2, "context_weight": 0.0, "held_out": 4, "start": str(start), **cloning}
    return asked(start, cloning=options, env="coins").recipe()


@pytest.mark.parametrize(("lora_rank", "precision"), [(0, "float32"), (0, "bfloat16"), (4, "float32")])
def test_a_language_model_learns_from_demonstrations(start, tmp_path, lora_rank, precision):
    card = make_policy(recipe_of(start, lora_rank=lora_rank, precision=precision), tmp_path)
    before, after = card["loss_held_out"]
    assert after < before
    assert card["start_sha256"] != card["weights_sha256"]
    kept = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert kept.config.tie_word_embeddings
    if lora_rank:
        adapted = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(start), tmp_path / "adapter")
        for name, weights in adapted.merge_and_unload().state_dict().items():
            assert torch.equal(weights, kept.state_dict()[name]), name


def test_what_was_cloned_plays_by_its_own_template(start: Path, tmp_path: Path) -> None:
    make_policy(recipe_of(start, batches=1, held_out=0), tmp_path)
    limits = {"max_episode_steps": 2, "max_reply_tokens": 4, "max_context": 4096}
    report = evaluate_policy(TrainConfig(model=str(tmp_path), env="coins", chat="compact", **limits), per_type=1)
    assert all(episode.turns for episode in report.paired.episodes)


def test_demonstrations_are_cut_to_what_the_start_takes(start: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(start)
    tokenizer.save_pretrained(tmp_path / "short")
    sizes = {"vocab_size": len(tokenizer), "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 900}
    GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(tmp_path / "short")
    card = make_policy(recipe_of(tmp_path / "short", batches=1, held_out=0), tmp_path / "policy")
    assert 700 < card["tokens_per_demonstration"] <= 900


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": PolicySize(width=30, heads=4)}, "size.width is a multiple of twice size.heads, got 30 and 4"),
        ({"size": PolicySize(layers=0)}, "size.layers must be at least 1, got 0"),
        ({"mixture": DemonstrationConfig(slips=2.0), "mixture_share": 0.5}, "slips must be at most 1, got 2.0"),
        ({"mixture_share": 0.5}, "has no mixture"),
        ({"lora_rank": 4}, "name one as start"),
    ],
)
def test_a_recipe_that_makes_no_policy_is_refused_before_it_plays(changes: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        PolicyRecipe(**changes).check()


# Vocabularies --------------------------------------------------------------------------------------------------------

SHOP = warm_started("webshop")[1].spelling
KNOWN = ["you", "play", "on", "cabinet", "see", "mug", "plate", "find", "take", "1", "2"]


def test_words_are_single_tokens_without_articles_and_punctuation_and_replies_come_back():
    tokenizer = build_tokenizer(KNOWN)
    reply = "<think> find mug </think> <action> take mug 1 </action>"
    assert tokenizer.decode(tokenizer.encode(reply)) == reply
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode("On the cabinet 1, you see a mug 1, and a plate 2."))
    assert tokens == ["on", "cabinet", "1", "you", "see", "mug", "1", "plate", "2"]
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("zebra mug")) == [UNKNOWN, "mug"]


def test_checkpoint_folder_loads_with_the_auto_classes_and_tokenises_alike(tmp_path):
    tokenizer = build_tokenizer(WORDS, max_length=128)
    build_model(tokenizer, SIZE).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    rendered = loaded.apply_chat_template(chat("mug"), tokenize=True, return_dict=False)
    assert rendered == tokenizer.apply_chat_template(chat("mug"), tokenize=True, return_dict=False)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.vocab_size == len(loaded)


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone():
    tokenizer, before = build_tokenizer(KNOWN), torch.get_rng_state()
    first, second, third = (build_model(tokenizer, SIZE, seed=seed).lm_head.weight for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_a_command_that_the_default_spelling_would_change_is_named():
    texts = ["<think> x </think> <action> take the Blue book </action>"]
    with pytest.raises(ConfigError, match=r"'take the Blue book'.*'take blue book'.*WarmStart\(spelling="):
        require_sayable(texts)
    require_sayable(["<think> x </think> <action> take blue book </action>"])
    assert "the" in vocabulary(texts, Spelling())


def test_vocabulary_is_ordered_by_count_then_name():
    assert vocabulary(["b a1 b", "c the a1 b"]) == ["b", "a1", "c"]


LABELS = ['24" x 36"', "8gb ram | 256gb ssd", "1 fl oz (pack of 1)", "b-blue", "7.5 wide", "< prev", "b0gbdg6upi", "5"]


@pytest.mark.parametrize("label", LABELS)
def test_labels_to_click_on_come_back_as_they_were(label, tmp_path):
    page = f"Back to Search [SEP] size [SEP] {label.upper()} [SEP] Price: $23.23 [SEP] Buy Now"
    build_tokenizer(vocabulary([page, "choose"], SHOP), SHOP).save_pretrained(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    reply = f"<think> choose {label} </think> <action> click[{label}] </action>"
    assert tokenizer.decode(tokenizer.encode(reply)) == reply


def test_prices_lose_their_cents_and_sizes_keep_their_halves():
    found = words("size: 7.5, and price lower than 40.00 dollars [SEP] $9.6 to $100.0 [SEP] $1234.56", SHOP)
    assert found == ["size", "7.5", "and", "price", "lower", "than", "40.00", "dollars", "$9", "to", "$100", "$1234"]


@pytest.mark.parametrize("spelling", [PLAIN_WORDS, SHOP])
@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"])))
def test_a_text_of_known_words_has_no_unknown_token(spelling, text):
    tokenizer = build_tokenizer(vocabulary([text], spelling), spelling)
    apart = len([*SPECIAL, *spelling.kept])
    spoken = [number for number in tokenizer.encode(text) if number >= apart]
    assert tokenizer.convert_ids_to_tokens(spoken) == words(text, spelling)
