"""Players that need no learning."""

from skillc_gym.envs.webshop.experts.shopper import Shopper, parse_instruction, words

__all__ = ["Shopper", "parse_instruction", "words"]
