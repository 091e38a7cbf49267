import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Dict, Text, Tuple
from gymnasium.spaces.utils import flatten
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, create_shared_memory, iterate
from gymnasium.wrappers import FlattenObservation
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.spaces import Unicode


@given(st.text(max_size=40), st.integers(0, 30), st.integers(0, 10))
def test_membership_is_a_matter_of_length(text, longest, shortest):
    space = Unicode(longest + shortest, min_length=shortest)
    assert (text in space) == (shortest <= len(text) <= longest + shortest)
    assert repr(space) == f"Unicode({shortest}, {longest + shortest})"
    assert space == pickle.loads(pickle.dumps(space)) == Unicode(longest + shortest, min_length=shortest, seed=3)
    assert space not in (Unicode(longest + shortest + 1, min_length=shortest), Text(40))
    assert Unicode(10) != Unicode(10, min_length=1)
    assert not any(thing in space for thing in (text.encode(), [text], None, longest))


@given(st.integers(0, 2**32 - 1), st.integers(0, 200_000), st.integers(0, 40))
def test_samples_are_short_members_and_follow_the_seed(seed, longest, shortest):
    one, other = (Unicode(longest + shortest, min_length=shortest, seed=seed) for _ in "ab")
    drawn = [one.sample() for _ in range(3)]
    assert drawn == [other.sample() for _ in range(3)]
    assert all(text in one and len(text) <= max(16, shortest) and text.isascii() for text in drawn)


def test_samples_respect_masks():
    only_a = np.zeros(95, dtype=np.int8)
    only_a[ord("a") - 32] = 1
    assert Unicode(100, seed=0).sample(mask=(5, only_a)) == "aaaaa"


@pytest.mark.parametrize("vector", [SyncVectorEnv, partial(AsyncVectorEnv, shared_memory=False)])
def test_gymnasiums_vectors_hold_members_of_different_spaces(toy_id, vector):
    members = [partial(WithSpace, toy_id, length) for length in (5_000, 6_000)]
    envs = vector(members, observation_mode="different")
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert observations in Tuple([Unicode(5_000), Unicode(6_000)])
    assert envs.step(["look", "look"])[0] in envs.observation_space
    envs.close()


class WithSpace(gymnasium.Wrapper):
    def __init__(self, name: str, length: int) -> None:
        super().__init__(gymnasium.make(name))
        self.observation_space = Unicode(length)


def test_batching_gives_a_tuple_of_strings():
    batch = batch_space(Unicode(20), 3)
    texts = ("a", "café", "")
    assert texts in batch
    assert tuple(iterate(batch, texts)) == texts
    assert concatenate(Unicode(20), texts, create_empty_array(Unicode(20), n=3)) == texts


def test_it_answers_everything_that_text_answers():
    mine, theirs = Unicode(20), Text(20, min_length=0, charset="".join(map(chr, range(32, 127))))
    assert set(vars(theirs)) <= set(dir(mine))
    assert mine.characters == theirs.characters
    assert mine.character_list == theirs.character_list
    assert mine.character_index("z") == theirs.character_index("z")


def test_what_cannot_be_is_refused_with_a_way_out():
    for shortest, longest in ((3, 2), (-1, 5)):
        with pytest.raises(ValueError, match="min_length"):
            Unicode(longest, min_length=shortest)
    with pytest.raises(CustomSpaceError, match="shared_memory=False"):
        create_shared_memory(Unicode(20), n=2)
    with pytest.raises(CustomSpaceError, match="Leave FlattenObservation out"):
        FlattenObservation(gymnasium.make("skillc/CoinCollector-v0"))
    with pytest.raises(CustomSpaceError, match="tokenizer"):
        flatten(Dict(said=Unicode(20)), {"said": "é"})
