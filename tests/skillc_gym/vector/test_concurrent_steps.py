"""Members whose environment says so step at once; the results are those of stepping one after the other."""

from __future__ import annotations

import threading

from toy_env import ToyEnv

from skillc_gym.vector import PairedVectorEnv


class Meeting(ToyEnv):
    """Every step waits until another member steps, too."""

    concurrent_steps = 2
    barrier = threading.Barrier(2, timeout=20)

    def step(self, action):
        self.barrier.wait()
        if action == "raise":
            raise RuntimeError("as asked")
        return super().step(action)


def test_members_step_at_once():
    groups, alone = PairedVectorEnv(Meeting, 2, 2), PairedVectorEnv(ToyEnv, 2, 2)
    for vector in (groups, alone):
        vector.reset(seed=0)
    action = groups.member_info(0)["admissible_commands"][0]
    met, plain = groups.step([action] * 4), alone.step([action] * 4)
    assert met[0] == plain[0]
    assert (met[1] == plain[1]).all()
