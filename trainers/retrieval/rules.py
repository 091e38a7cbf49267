"""The rules that come with the package: BM25 without any model, sentence embeddings for those who have one at hand."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from skill_library.errors import brief
from skillc_gym.errors import ConfigError, MissingDataError, needs_extra
from trainers.advantages.grouping import FloatArray
from trainers.models import hub_access
from trainers.retrieval import RetrievalRule

_WORD = re.compile(r"[^\W_]+", re.UNICODE)


def words(text: str) -> list[str]:
    """Lower-case words and numbers of a text, in order."""
    return _WORD.findall(text.lower())


class BM25:
    """Okapi BM25 (Robertson and Zaragoza 2009), as a share of what the query scores against itself.

    The weights of words are those of the given texts together with the query, so that a bank of one entry can be
    searched too; dividing by the query's own score puts the result into [0, 1].

    Examples:
        >>> BM25()("a hot mug", ["put a hot mug in shelf", "clean the plate"]).round(2).tolist()
        [0.87, 0.0]
    """

    def __init__(self, k1: float = 0.9, b: float = 0.4) -> None:
        self.k1, self.b = k1, b

    def __call__(self, query: str, texts: Sequence[str]) -> FloatArray:
        """As :data:`trainers.retrieval.Similarity` says."""
        asked = Counter(words(query))
        bags = [Counter(words(text)) for text in texts]
        everything = [*bags, asked]
        average = sum(bag.total() for bag in everything) / len(everything) or 1.0
        holding = {word: sum(word in bag for bag in everything) for word in asked}
        weight = {word: math.log(1 + (len(everything) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}
        whole = self._score(asked, asked, weight, average)
        scores = [self._score(asked, bag, weight, average) / whole if whole else 0.0 for bag in bags]
        return np.clip(np.asarray(scores, dtype=np.float64), 0.0, 1.0)

    def _score(self, asked: Counter[str], bag: Counter[str], weight: dict[str, float], average: float) -> float:
        norm = self.k1 * (1 - self.b + self.b * bag.total() / average)
        # Sorted and summed exactly: the order of a query's words must not show in the last bits.
        return math.fsum(
            count * weight[word] * bag[word] * (self.k1 + 1) / (bag[word] + norm)
            for word, count in sorted(asked.items())
            if bag[word]
        )


class SentenceEmbeddings:
    """Cosine similarity, cut at 0, of mean-pooled states of a transformers encoder (all-MiniLM-L6-v2 and its like)."""

    def __init__(self, model: str) -> None:
        with needs_extra("transformers", "train"):
            from transformers import AutoModel, AutoTokenizer
        try:
            with hub_access(model):  # a folder that is missing is no name to ask a hub for
                self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
                self._model: Any = AutoModel.from_pretrained(model).eval()
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"No sentence encoder at embeddings={brief(model)}: neither a folder with a transformers encoder nor a "
                f"name that could be fetched ({str(error).strip().splitlines()[0]}); leave it out for BM25"
            ) from error
        self._known: dict[str, FloatArray] = {}

    def __call__(self, query: str, texts: Sequence[str]) -> FloatArray:
        """As :data:`trainers.retrieval.Similarity` says."""
        own = self._embedding(query)
        # One product at a time, as below: that of a matrix differs in the last bits with its number of rows.
        products = [float(self._embedding(text) @ own) for text in texts]
        return np.clip(np.asarray(products, dtype=np.float64), 0.0, 1.0)

    def _embedding(self, text: str) -> FloatArray:
        # One text at a time: padding would make a text's embedding depend on its neighbours in the last bits.
        if text not in self._known:
            import torch

            with torch.no_grad():
                states = self._model(**self._tokenizer(text, truncation=True, return_tensors="pt")).last_hidden_state
            mean = states[0].mean(0).double()
            self._known[text] = (mean / mean.norm()).numpy()
        return self._known[text]


def _start(embeddings: str | None) -> SentenceEmbeddings:
    if embeddings is None:
        raise ConfigError("Retrieval by embeddings needs a sentence encoder: embeddings=FOLDER or a model's name")
    return SentenceEmbeddings(embeddings)


RULES = (RetrievalRule("bm25", lambda embeddings: BM25()), RetrievalRule("embeddings", _start))
