"""What a customer wants, and what a purchase is worth."""

from skillc_gym.envs.webshop.goals.goals import Goal
from skillc_gym.envs.webshop.goals.nouns import NounTagger, keep_nouns, noun_tagger
from skillc_gym.envs.webshop.goals.reward import COLOR_WORDS, normalize_color, score, token_set_ratio
from skillc_gym.envs.webshop.goals.tables import open_goals

__all__ = [
    "COLOR_WORDS",
    "Goal",
    "NounTagger",
    "keep_nouns",
    "normalize_color",
    "noun_tagger",
    "open_goals",
    "score",
    "token_set_ratio",
]
