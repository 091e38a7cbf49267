"""What the suite knows of WebShop."""

from __future__ import annotations

from dataclasses import replace

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import DemoTasks, Spelling, WarmStart
from skillc_gym.envs.webshop.shop.nodes import NAVIGATION

TASK_TYPE = "shopping"

# Labels to click on come back as they were, punctuation and all; prices lose their cents.
_SPELLING = Spelling(
    kept=("[SEP]", "search[", "click[", "]"),
    blanked=(r"[,:](?=\s|$)",),
    split=((r"\$\d+", "isolated"), (r"^\.\d+$", "removed")),
    glued=(("[ ", "["), (" ]", "]")),
)
_BUTTONS = "|".join(NAVIGATION)
_WARM_START = WarmStart(
    expert="skillc_gym.envs.webshop.experts.shopper:demonstrator",
    error_rates={TASK_TYPE: 0.90},
    generator={"seed": 0, "size": 1000},  # 1,996 goals to train on, 500 to test
    policy="checkpoint_webshop",
    policies={"hard": "checkpoint_webshop_hard"},
    # Chosen options: whatever is clicked but buttons and products.
    essential={TASK_TYPE: rf"^click\[(?!(?:b0\w{{8}}|{_BUTTONS})\])"},
    demo=DemoTasks(
        held_out_split="test",
        held_out_per_type=240,
        panel_per_type=64,
        max_reply_tokens=32,
        max_episode_steps=12,
        max_episode_steps_of_data=12,
    ),
    spelling=_SPELLING,
    min_count=20,
)
WEBSHOP = EnvSpec(
    name="webshop",
    id="skillc/WebShop-v0",
    entry_point="skillc_gym.envs.webshop.env:WebShopEnv",
    max_episode_steps=15,
    library="webshop",
    chat={"default": ChatFormat.shop(), "compact": replace(ChatFormat.compact(), role="customer")},
    splits=("train", "valid", "test"),
    split_of="skillc_gym.envs.webshop.goals.goals:split_of",
    task_types={TASK_TYPE: TASK_TYPE},
    curriculum={"capacity": (1,), "retire_by": ()},  # there is one skill, and it is never pruned
    warm_start=_WARM_START,
)
WEBSHOP_BROWSER = replace(
    WEBSHOP,
    name="webshop-browser",
    id="skillc/WebShopBrowser-v0",
    entry_point="skillc_gym.envs.webshop.browser.env:WebShopBrowserEnv",
    warm_start=None,
)
SPECS = (WEBSHOP, WEBSHOP_BROWSER)
