"""One episode of one turn, for tests of what is written of episodes."""

from skillc_gym.episodes import Episode, Turn

TURN = Turn("You see a mug.", "<think>so</think><action>take it</action>", "take it", True, True, 0.5)
EPISODE = Episode(
    task_id="split/task/1",
    task_type="heat",
    goal="put a hot mug on the desk",
    condition=1,
    skill="general+heat",
    skill_sha256="0" * 64,
    skill_text="Open the microwave.",
    seed=3,
    group_id=0,
    turns=(TURN,),
    won=True,
    task_score=0.5,
    terminated=True,
    truncated=False,
    messages=[{"role": "system", "content": "You play."}],
    final_observation="You won.",
)
