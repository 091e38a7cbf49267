import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from skillc_gym.panels import choose_panel, panel_hash


def tasks(**sizes: int) -> dict[str, str]:
    return {f"{kind}/{i:03d}": kind for kind, size in sizes.items() for i in range(size)}


def test_a_panel_is_balanced_sorted_and_the_same_everywhere():
    chosen = choose_panel(tasks(heat=20, cool=9), 2)
    assert chosen == ("cool/001", "cool/007", "heat/000", "heat/005")
    assert chosen != choose_panel(tasks(heat=20, cool=9), 2, seed=1)
    assert panel_hash(chosen)[:12] == "559b59edf399"


@given(st.integers(0, 100), st.integers(1, 9), st.randoms())
def test_order_does_not_matter_and_smaller_panels_are_part_of_larger_ones(seed, per_type, random):
    shuffled = list(tasks(heat=20, cool=9).items())
    random.shuffle(shuffled)
    larger = choose_panel(dict(shuffled), 9, seed)
    assert set(choose_panel(tasks(heat=20, cool=9), per_type, seed)) <= set(larger)


def test_a_panel_larger_than_a_type_is_refused():
    with pytest.raises(ConfigError, match=r"'cool': there are 9.*per_type <= 9"):
        choose_panel(tasks(heat=20, cool=9), 10)
    for wrong in (0, 1.5):
        with pytest.raises(ConfigError, match="per_type is a whole number from 1 up"):
            choose_panel(tasks(heat=20), wrong)
