"""Where tests find real data, and what they do when it is not there."""

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from skillc_gym.episodes import Episode, Turn

# No test is timed: the machine may be busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent
WEBSHOP = ROOT.parent / "shared" / "data" / "webshop"
VECTORS = ROOT.parent / "shared" / "reference" / "webshop"
NAMED = os.environ.get("ALFWORLD_DATA")
"""Read before any test: importing upstream sets the variable."""
ARCHIVE = ROOT.parent / "shared" / "data" / "alfworld" / "alfworld_games_json_2.1.1.tar.xz"

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
"""One of one turn, for tests of what is written of episodes."""


def pytest_configure() -> None:
    """Hides GPUs from all tests but theirs (``make test-gpu``): expected figures are a processor's, in float32."""
    if not os.environ.get("TEST_GPU"):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts files with slow or many tests first: no process should begin the longest file when the others end."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    many = Counter(item.path for item in items)
    items.sort(key=lambda item: (-slow[item.path], -many[item.path], str(item.path)))


def pytest_collection_finish() -> None:
    """Leaves what was imported out of later garbage collections, which went through all of torch some hundred times."""
    gc.collect()
    gc.freeze()


def there(named: str | None, usual: Path, what: str) -> Path:
    place = Path(named) if named else usual
    if not place.exists():
        pytest.skip(f"no {what}")
    return place


@pytest.fixture(scope="session")
def alfworld_data() -> Path:
    """A folder or archive of real ALFWorld games; skips the test where there is none."""
    return there(NAMED, ARCHIVE, "ALFWorld games: set ALFWORLD_DATA to the folder or archive that holds json_2.1.1")


@pytest.fixture(scope="session")
def webshop_data() -> Path:
    """The folder of the real 1,000 products; skips the test where there is none."""
    what = "WebShop products: set WEBSHOP_DATA to the folder that holds items_shuffle_1000.json"
    return there(os.environ.get("WEBSHOP_DATA"), WEBSHOP, what)


@pytest.fixture(scope="session")
def webshop_reference() -> Path:
    """The folder of recordings of upstream's WebShop; skips the test where there is none."""
    what = "recordings of WebShop: set WEBSHOP_REFERENCE to the folder of reference vectors"
    return there(os.environ.get("WEBSHOP_REFERENCE"), VECTORS, what)


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., None]:
    """Waits for what another process does: until a condition holds, or fails after so many seconds."""

    def wait(condition: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"nothing came within {seconds} seconds"
            time.sleep(0.02)

    return wait


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Catalogues are built in a folder of this run, not in the user's cache, which is None if it is the default."""
    users = os.environ.get("SKILLC_CACHE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield users


@pytest.fixture(scope="session", autouse=True)
def hears_interrupts():
    """A shell starts what runs in its background deaf to Ctrl-C, and so would be the processes that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def outlives_no_power_cut():
    """Files are written and not waited for: some hundred runs would each wait for the disk at every checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
