import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_env import ToyEnv

from skillc_gym.vector import PairedVectorEnv
from skillc_gym.vector.columns import InfoColumns, info_columns

whole = st.integers(-(2**70), 2**70)
value = st.one_of(st.booleans(), whole, st.floats(allow_nan=False), st.text(), st.lists(st.integers()), st.none())


@given(st.lists(st.dictionaries(st.sampled_from("abc"), value), min_size=1))
def test_every_value_survives(infos):
    columns = info_columns(infos)
    for key in {key for info in infos for key in info}:
        assert columns[f"_{key}"].tolist() == [key in info for info in infos]
        assert columns[key].shape == (len(infos),)
        for got, info in zip(columns[key], infos, strict=True):
            if key in info:
                assert got == info[key]


def test_dtypes_follow_all_values_not_the_first():
    columns = info_columns([{"n": 0, "b": True, "i": 1, "s": "x"}, {"n": 0.5, "b": False, "i": 2, "s": "y"}])
    assert columns["n"].tolist() == [0.0, 0.5]
    assert columns["b"].dtype == np.bool_
    assert columns["i"].dtype == np.int64
    assert columns["s"].dtype == object


def test_nested_dicts_become_nested_columns():
    columns = info_columns([{}, {"episode": {"r": 1.0, "l": 3}}, None])
    assert columns["_episode"].tolist() == [False, True, False]
    assert columns["episode"]["r"].tolist() == [0.0, 1.0, 0.0]
    assert columns["episode"]["_l"].tolist() == [False, True, False]
    assert info_columns([]) == info_columns([{}, {}]) == {}


def test_arrays_of_one_shape_are_stacked():
    one = np.array([1, 2], np.int8)
    columns = info_columns([{"mask": one, "odd": one}, {}, {"mask": 2 * one, "odd": np.zeros(3)}])
    assert columns["mask"].dtype == np.int8
    assert columns["mask"].tolist() == [[1, 2], [0, 0], [2, 4]]
    assert columns["_mask"].tolist() == [True, False, True]
    assert (columns["odd"].dtype, columns["odd"].shape) == (object, (3,))


@pytest.mark.parametrize(
    "look",
    [
        dict,
        lambda infos: infos | {},
        lambda infos: {key: infos.get(key) for key in reversed(infos)},
        lambda infos: pickle.loads(pickle.dumps(infos)),
        copy.copy,
        copy.deepcopy,
        lambda infos: json.loads(json.dumps(infos)),
    ],
)
def test_columns_made_late_are_the_dict_they_become(look):
    made = []
    infos = InfoColumns(lambda n: made.append(n) or {"n": n, "m": [n]}, 3)
    assert not made
    assert look(infos) == {"n": 3, "m": [3]} == infos == InfoColumns(lambda: {"n": 3, "m": [3]})
    assert made == [3]


def test_columns_made_late_can_be_written_to():
    for write in (lambda infos: infos.update(b=2), lambda infos: infos.__setitem__("b", 2)):
        infos = InfoColumns(lambda: {"a": 1})
        write(infos)
        assert ("a" in infos, len(infos), repr(infos)) == (True, 2, "{'a': 1, 'b': 2}")


def test_columns_read_late_tell_the_step_they_came_from():
    early, late = PairedVectorEnv(ToyEnv, 2, 2), PairedVectorEnv(ToyEnv, 2, 2)
    read, kept = [], []
    for groups, found, look in ((early, read, dict), (late, kept, lambda infos: infos)):
        found.append(look(groups.reset(seed=0)[1]))
        for actions in (["take key"] * 4, {0: "open it", 3: "fly"}, {1: "wait"}):
            found.append(look(groups.step(actions)[-1]))
        found.append(look(groups.reset(seed=1)[1]))
    for one, other in zip(read, kept, strict=True):
        assert list(one) == list(other)
        assert all(np.array_equal(one[key], other[key]) for key in one)
