"""The fixed panels: the tasks by their hash, the step limit, and the command that plays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BoardPanel:
    """A world's panel.

    Attributes:
        title: For people.
        tasks: How many.
        sha256: Hash of their names and of what identifies them, as reports have it.
        steps: The step limit.
        library_sha256: Of the built-in skills, which the runs with skills are shown.
        words: What ``skillc evaluate`` is told beside the model.
        data: Where the tasks come from.
        published: Which column of the published figures is of this world: "alfworld" or "webshop"; "" for none.
    """

    title: str
    tasks: int
    sha256: str
    steps: int
    library_sha256: str
    words: str
    data: str
    published: str = ""

    @property
    def env(self) -> str:
        """Name of its environment, and of its built-in skills."""
        return self.words.split()[1]

    def command(self, model: str = "MODEL") -> str:
        """The command that plays it."""
        return f"skillc evaluate --model {model} {self.words} --max-episode-steps {self.steps} --task-types none"


_HOUSEHOLD = "5cafced0ab64886076819fb3712c7f38a318b7b444276ca5056667853050c0d1"
_SHOPPING = "c306ed76305cc8693737e7bdc1c668f743ee8243400d81fc2ef5cbfa802255ea"

PANELS: Mapping[str, BoardPanel] = {
    "alfworld-unseen": BoardPanel(
        "ALFWorld, valid_unseen",
        134,
        "ab2727180ad87347a580e0caf10dc4fc1b6a37312418cad9b38a3e882fe86325",
        50,
        _HOUSEHOLD,
        '--env alfworld --data "$ALFWORLD_DATA" --split valid_unseen',
        "the real games: all 134 of the split",
    ),
    "alfworld-seen": BoardPanel(
        "ALFWorld, valid_seen",
        140,
        "2bb9ffb8703f98d0d49cfd5e5dfb4832045b4b758e1c979e43aa7c37c255daba",
        50,
        _HOUSEHOLD,
        '--env alfworld --data "$ALFWORLD_DATA" --split valid_seen',
        "the real games: all 140 of the split",
        "alfworld",
    ),
    "webshop": BoardPanel(
        "WebShop, test",
        500,
        "191ee1fdfa3d65a60809e54ab254cd8d8b3d0744a158c94ebc6cd9424fe0fb72",
        15,
        _SHOPPING,
        '--env webshop --data "$WEBSHOP_DATA" --split test',
        "the real set of 1,000 products: its 500 test goals",
        "webshop",
    ),
    "houses": BoardPanel(
        "Generated houses",
        144,
        "8011862a0a4d978af539e01376620ae311682df498406dbb190df49d4b37b862",
        20,
        _HOUSEHOLD,
        "--env alfworld --data generated --split valid_unseen --per-type 24 "
        '--env.generator \'{"seed": 0, "games_per_type": 400, "size": "small"}\'',
        "generated games, 24 of each type: nothing to download",
    ),
}
"""By name. A panel never changes: other tasks or another step limit would be another panel."""
