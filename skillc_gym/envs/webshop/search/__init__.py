"""Lucene's English analyzer and its BM25 ranking."""

from skillc_gym.envs.webshop.search.analyzer import analyze, tokenize

__all__ = ["analyze", "tokenize"]
