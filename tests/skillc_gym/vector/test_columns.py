import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.vector.columns import info_columns

value = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(),
    st.lists(st.integers()),
    st.none(),
)


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


def test_lists_of_one_length_stay_lists():
    assert info_columns([{"c": ["a", "b"]}, {"c": ["c", "d"]}])["c"].tolist() == [["a", "b"], ["c", "d"]]


def test_nested_dicts_become_nested_columns():
    columns = info_columns([{}, {"episode": {"r": 1.0, "l": 3}}, None])
    assert columns["_episode"].tolist() == [False, True, False]
    assert columns["episode"]["r"].tolist() == [0.0, 1.0, 0.0]
    assert columns["episode"]["_l"].tolist() == [False, True, False]


def test_nothing_gives_nothing():
    assert info_columns([]) == info_columns([{}, {}]) == {}
