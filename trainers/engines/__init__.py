"""Who generates tokens: transformers, vLLM, or a scripted policy, behind one protocol.

The engines themselves are imported from their own modules, so that a missing extra only matters where it is used.
"""

from trainers.base import Sampling
from trainers.engines.types import Engine, Generation, Request

__all__ = ["Engine", "Generation", "Request", "Sampling"]
