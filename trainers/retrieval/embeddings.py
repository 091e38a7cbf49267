"""Sentence embeddings in place of BM25, for those who have a model at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skill_library.errors import brief
from skillc_gym.errors import ConfigError, MissingDataError, needs_extra
from trainers.advantages.grouping import FloatArray
from trainers.retrieval import RetrievalRule


class SentenceEmbeddings:
    """Cosine similarity, cut at 0, of mean-pooled states of a transformers encoder (all-MiniLM-L6-v2 and its like)."""

    def __init__(self, model: str) -> None:
        with needs_extra("transformers", "train"):
            from transformers import AutoModel, AutoTokenizer
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
            self._model: Any = AutoModel.from_pretrained(model).eval()
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"No sentence encoder at embeddings={brief(model)}: neither a folder with a transformers encoder nor a "
                f"name that could be fetched ({str(error).strip().splitlines()[0]}); leave it out for BM25"
            ) from error
        self._known: dict[str, FloatArray] = {}

    def __call__(self, query: str, texts: Sequence[str]) -> FloatArray:
        """As :class:`trainers.retrieval.Similarity` says."""
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


RULE = RetrievalRule("embeddings", _start)
