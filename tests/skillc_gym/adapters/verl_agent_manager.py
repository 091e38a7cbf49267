"""Plays a fork's own managers over our environments, in a process of its own: three forks share the name of a package.

    python verl_agent_manager.py CHECKOUT alfworld|webshop STEPS

Everything of ``agent_system`` is the checkout's, its two import lines aside. Prompts and verdicts on replies are
compared with those of our wrappers, for every member at every step. What the checkout imports besides, and is not
installed, is stood in for by empty modules: the manager plays without it.
"""

import importlib
import importlib.util
import json
import random
import sys
import time
from types import ModuleType, SimpleNamespace

import gymnasium

import skillc_gym
from skillc_gym.adapters.verl_agent import read_chat
from skillc_gym.wrappers import ActionFormat, ChatPrompt

GROUPS, MEMBERS, VALIDATION = 16, 8, 128
SEED = 0
ENVS = {"alfworld": "alfworld/AlfredTWEnv", "webshop": "Webshop"}


class Config(SimpleNamespace):
    """As much of an OmegaConf as the managers ask for."""

    def get(self, name, default=None):
        return getattr(self, name, default)


class Absent(ModuleType):
    """A module whose names are there and nothing: for imports of what the managers never call."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"to_container": staticmethod(lambda config, **_: vars(config))})


def configuration(world):
    env = Config(
        env_name=ENVS[world],
        seed=SEED,
        max_steps=50,
        history_length=2,
        rollout=Config(n=MEMBERS),
        resources_per_worker=Config(num_cpus=0.1),
        alfworld=Config(eval_dataset="eval_in_distribution"),
        webshop=Config(use_small=True, human_goals=False),
    )
    return Config(env=env, data=Config(train_batch_size=GROUPS, val_batch_size=VALIDATION))


def replies(commands, draw):
    """One reply per member: mostly well-formed, now and then one that breaks a rule."""
    said = []
    for possible in commands:
        command = draw.choice(possible)
        good = f"<think>Why not.</think><action>{command}</action>"
        broken = [command, good.upper(), f"<action>{command}</action>", f"</action>{good}", f"{good}\u4e2d\u6587", ""]
        said.append(good if draw.random() < 0.8 else draw.choice(broken))
    return said


def ours(world, chat, manager, group):
    """One member's episode in our wrappers: the same task, in the chat format that was read from the checkout."""
    env = manager.envs.groups.envs[group * manager.envs.group_n]
    kwargs = dict(env.spec.kwargs)
    env_id = {"alfworld": "skillc/ALFWorld-v0", "webshop": "skillc/WebShop-v0"}[world]
    again = gymnasium.make(env_id, max_episode_steps=50, **kwargs)
    return ChatPrompt(ActionFormat(again, tail=chat.reply_tail), chat)


def commands_of(world, envs, infos):
    if world == "alfworld":
        return envs.get_admissible_commands
    offered = [info["available_actions"] for info in infos]
    words = ("red shoes", "desk <r>", "a")
    return [
        [f"click[{label}]" for label in one["clickables"]] + [f"search[{word}]" for word in words] for one in offered
    ]


def play(manager, world, checkout, steps):
    """Plays a batch; returns what was compared."""
    envs, draw, chat = manager.envs, random.Random(0), read_chat(checkout, world)
    prompts, infos = manager.reset({})
    twins = [ours(world, chat, manager, member // envs.group_n) for member in range(envs.num_processes)]
    starts = [twin.reset(seed=0, options={"task_id": info["task_id"]}) for twin, info in zip(twins, infos, strict=True)]
    assert [start[0] for start in starts] == prompts["text"]
    assert [info["observation"] for _, info in starts] == [a.observation for a in envs._answers]
    done, compared = [False] * len(twins), len(twins)
    for _ in range(steps):
        said = replies(commands_of(world, envs, infos), draw)
        prompts, rewards, dones, infos = manager.step(list(said))
        assert rewards.shape == dones.shape == (len(twins),)
        for member, twin in enumerate(twins):
            if done[member]:
                continue
            text, _, _, _, info = twin.step(said[member])
            # What follows a purchase is read by nobody, and lists the next session's commands there.
            assert prompts["text"][member] == text or (world == "webshop" and dones[member]), (said[member], text)
            assert bool(infos[member]["is_action_valid"]) == info["format_valid"], said[member]
            assert bool(infos[member]["won"]) == bool(info["won"])
            assert rewards[member] == (10.0 if info["won"] else 0.0)
            compared += 1
        done = [before or bool(now) for before, now in zip(done, dones, strict=True)]
    again = manager.step(["<think></think><action>look</action>"] * len(twins))
    assert [again[2][member] for member in range(len(twins)) if done[member]] == [True] * sum(done)
    outcome = manager.success_evaluator(
        total_infos=[[info] for info in infos], total_batch_list=[[{"active_masks": True}]] * len(twins)
    )
    return {"members": len(twins), "prompts": compared, "told": sorted(outcome)}


def main(checkout, world, steps):
    sys.path.insert(0, checkout)
    asked = ("omegaconf", "openai", "ray", "torchvision", "sentence_transformers", "faiss")
    sys.modules.update({name: Absent(name) for name in asked if importlib.util.find_spec(name) is None})
    # make_envs waits for the processes of 256 shops; here there are none.
    time.sleep = lambda seconds: None
    managers = importlib.import_module("agent_system.environments.env_manager")
    training, validation = managers.make_envs(configuration(world))
    assert skillc_gym.__name__ in type(training.envs).__module__
    found = {"training": play(training, world, checkout, steps), "validation": play(validation, world, checkout, steps)}
    training.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
