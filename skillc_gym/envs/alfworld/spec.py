"""What the suite knows of ALFWorld."""

from __future__ import annotations

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import DemoTasks, WarmStart

_DEMO = DemoTasks(
    held_out_split="valid_unseen",
    held_out_per_type=40,
    panel_per_type=16,
    max_reply_tokens=20,
    max_episode_steps=20,
    max_episode_steps_of_data=30,
    # A panel of 16 games per type knows a gap to some 0.1 only, so one that stays below 0.05 counts as none.
    preset_options={"tau_retire": 0.05},
    data_variable="ALFWORLD_DATA",
)
_WARM_START = WarmStart(
    expert="skillc_gym.envs.alfworld.experts.explorer:demonstrator",
    skill="skillc_gym.envs.alfworld.generate.conventions:skill_of_game",
    error_rates={
        "pick_and_place_simple": 0.15,
        "look_at_obj_in_light": 0.75,
        "pick_clean_then_place_in_recep": 0.85,
        "pick_heat_then_place_in_recep": 0.90,
        "pick_cool_then_place_in_recep": 0.90,
        "pick_two_obj_and_place": 0.80,
    },
    generator={"seed": 0, "games_per_type": 400, "size": "small"},  # 2,400 games to train on
    mixture={"seed": 0, "games_per_type": 1000, "size": "real", "scenes": 5000},  # rooms hardly ever come twice
    policy="checkpoint",
    policies={
        "hard": "checkpoint_hard",
        "real": "checkpoint_real",
        "real-hard": "checkpoint_real_hard",
        "real-hard-trained": "checkpoint_real_hard_trained",
    },
    essential={
        "look_at_obj_in_light": r"^use desklamp|^use floorlamp",
        "pick_clean_then_place_in_recep": r"^clean ",
        "pick_heat_then_place_in_recep": r"^heat ",
        "pick_cool_then_place_in_recep": r"^cool ",
        "pick_two_obj_and_place": r"(?s)^(?:move|put) .*^(?:move|put) ",
    },
    demo=_DEMO,
    slips=True,
)
ALFWORLD = EnvSpec(
    name="alfworld",
    id="skillc/ALFWorld-v0",
    entry_point="skillc_gym.envs.alfworld.env:ALFWorldEnv",
    vector_entry_point="skillc_gym.envs.alfworld.vector:make_vector",
    max_episode_steps=50,
    library="alfworld",
    chat={"default": ChatFormat.default(), "compact": ChatFormat.compact()},
    splits=SPLITS,
    task_types=SHORT_NAMES,
    warm_start=_WARM_START,
    planner="skillc_gym.envs.alfworld.experts.planner:shortest_plan",
)
SPECS = (ALFWORLD,)
