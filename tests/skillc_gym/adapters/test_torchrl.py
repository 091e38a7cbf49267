"""TorchRL: the page's example, and what is left of the pair in its rollouts."""

import pytest
from scripted import run_blocks

torch = pytest.importorskip("torch", reason="needs the torchrl extra")
pytest.importorskip("torchrl", reason="needs the torchrl extra, in an environment of its own: make test-adapters")

from torchrl.envs.utils import check_env_specs


def test_the_page_plays_a_pair():
    torch.manual_seed(0)
    with_, without = run_blocks("torchrl.md")["rollouts"]
    for rollout, condition in ((with_, 1), (without, 0)):
        assert rollout["next", "condition"].unique().tolist() == [condition]
        chosen = rollout["action_mask"].gather(-1, rollout["action"].argmax(-1, keepdim=True))
        assert chosen.all()
        ends = [rollout["next", name].flatten().tolist() for name in ("terminated", "truncated")]
        assert [sum(flags) for flags in zip(*ends, strict=True)] == [0] * (len(rollout) - 1) + [1]
    # The same task: the same commands are possible at the start. The vectors differ, since one has read the skill.
    assert torch.equal(with_["action_mask"][0], without["action_mask"][0])


def test_the_environment_of_the_page_gives_what_its_specs_declare():
    env = run_blocks("torchrl.md")["masked"]
    given = env.rollout(3)
    assert given["next", "won"].dtype == env.observation_spec["won"].dtype == torch.float64
    check_env_specs(env)


def test_a_collector_plays_admissible_commands_only_and_both_conditions_as_the_curriculum_has_it():
    batch = run_blocks("torchrl.md")["batch"]
    assert len(batch) == 50
    assert batch["action_mask"].gather(-1, batch["action"].argmax(-1, keepdim=True)).all()
    ends = batch["next", "done"].flatten().nonzero().flatten().tolist()
    assert len(ends) >= 4
    assert batch["next", "condition"].unique().tolist() == [0, 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    for start, end in zip(starts, ends, strict=True):  # an episode has one condition
        assert batch["next", "condition"][start : end + 1].unique().numel() == 1
