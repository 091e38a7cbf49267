"""What is seen: the sentences that describe a state."""

from __future__ import annotations

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.state import State

__all__ = ["condition_of", "contents", "examined_object", "examined_receptacle", "introduction", "inventory", "look"]


def introduction(game: Game, state: State) -> str:
    """Says where the agent is and what its task is; only this tells all receptacles of the house."""
    rules = game.wording.rules
    view = _around(game, state, rules["look.feedback"], whole_house=True)
    return rules["intro"][0].format(view=view, task=game.task)


def look(game: Game, state: State) -> str:
    """Says what the agent faces and what lies about."""
    return _around(game, state, game.wording.says["look"], whole_house=False)


def contents(game: Game, state: State, receptacle: int) -> str:
    """Says what is in or on a receptacle, as part of another sentence."""
    return _inside(game, state, receptacle, game.wording.rules["examineReceptacle.feedback"])


def examined_receptacle(game: Game, state: State, receptacle: int) -> str:
    """Says what is in or on a receptacle."""
    return _inside(game, state, receptacle, game.wording.says["examinereceptacle"])


def examined_object(game: Game, state: State, thing: int) -> str:
    """Says what is special about an object."""
    sentence = game.wording.says["examineobject"][condition_of(game, state, thing)]
    inner = ["a " + name for name in game.holders.get(thing, ())]
    return sentence.format(o=game.objects[thing], things=game.wording.listing(inner))


def inventory(game: Game, state: State) -> str:
    """Says what the agent holds."""
    sentences = game.wording.says["inventory"]
    return sentences[1] if state.held < 0 else sentences[0].format(things="a " + game.objects[state.held])


def condition_of(game: Game, state: State, thing: int) -> int:
    """Returns which of the grammar's sentences on an object fits; the numbers are the grammar's order."""
    if thing in game.holders:
        return 0
    # The grammar lists its sentences by how much they say, and the first whose condition holds is said; a conjunction
    # that it does not list (cool and hot, say) falls to the next that fits.
    clean, hot = state.clean >> thing & 1, state.hot >> thing & 1
    cool, sliced = state.cool >> thing & 1, state.sliced >> thing & 1
    # 1: hot, clean, sliced ... 5: cool, sliced; 6 to 10 are those without "sliced".
    if sliced and (clean or hot or cool):
        return (1 if hot else 2 if cool else 3) if clean else (4 if hot else 5)
    if clean or hot or cool:
        return (6 if hot else 7 if cool else 9) if clean else (8 if hot else 10)
    if thing in game.toggleable and state.toggled >> thing & 1:
        return 11
    return 13 if sliced and thing in game.sliceable else 14


def _inside(game: Game, state: State, receptacle: int, sentences: tuple[str, ...]) -> str:
    name = game.receptacles[receptacle]
    if not game.openable >> receptacle & 1:
        sentence = sentences[2]
    elif state.opened >> receptacle & 1:
        sentence = sentences[0]
    else:
        return sentences[1].format(r=name)
    things = game.wording.listing(["a " + game.objects[thing] for thing in state.inside[receptacle]])
    return sentence.format(r=name, things=things)


def _around(game: Game, state: State, sentences: tuple[str, ...], *, whole_house: bool) -> str:
    rules, listing = game.wording.rules, game.wording.listing
    here = game.here[state.place]
    if here:
        places = listing([game.receptacles[receptacle] for receptacle in here])
        return sentences[0].format(facing=rules["look-variations"][0].format(places=places), floor=_floor(game, state))
    appliances = rules["list_appliances"]
    seen = [f"a {name}" for name, places in zip(game.receptacles, game.places_of, strict=True) for _ in places]
    # Upstream tells all receptacles in the introduction alone; a later look with none in reach says "nothing".
    if not whole_house or not seen:
        return sentences[1].format(appliances=appliances[1])
    return sentences[1].format(appliances=appliances[0].format(things=listing(seen)))


def _floor(game: Game, state: State) -> str:
    """Tells the objects here that were taken out of something here, once for each such receptacle."""
    sentences = game.wording.rules["list_objects_on_the_floor"]
    fallen = [
        "a " + game.objects[thing]
        for thing in state.lying[state.place]
        for receptacle in game.here[state.place]
        if (thing, receptacle) in state.left
    ]
    return sentences[0].format(things=game.wording.listing(fallen)) if fallen else sentences[1]
