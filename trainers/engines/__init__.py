"""Who generates: transformers, vLLM, a server, or a function, behind one protocol for tokens and one for words.

An engine is one file with an :class:`EngineSpec`, named ``engine=my_module:ENGINE``. What is exported is imported when
it is asked for, so that a missing extra only matters where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.base import Sampling
    from trainers.engines.openai import OpenAIEngine
    from trainers.engines.openai_options import ServerOptions
    from trainers.engines.registry import (
        CHOOSING,
        ENGINES,
        IN_PROCESS,
        CheckpointModel,
        EngineSpec,
        TrainerModel,
        check_engine,
        engine_spec,
    )
    from trainers.engines.text import FunctionEngine, TextEngine, TextReply, TextRequest
    from trainers.engines.transformers import TransformersEngine
    from trainers.engines.types import Engine, Generation, Request, StreamingEngine
    from trainers.engines.vllm import VllmEngine, check_vllm
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["CHOOSING", "ENGINES", "IN_PROCESS", "CheckpointModel", "Engine", "EngineSpec", "FunctionEngine"]
__all__ += ["Generation", "OpenAIEngine", "Request", "Sampling", "ServerOptions"]
__all__ += ["StreamingEngine", "TextEngine", "TextReply", "TextRequest", "TrainerModel", "TransformersEngine"]
__all__ += ["VllmEngine", "check_engine", "check_vllm", "engine_spec"]
