"""Generates with vLLM: in this process, or through the vLLM that TRL's trainer owns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import numpy as np

from skillc_gym.errors import ConfigError, EngineError, SkillCError, needs_extra
from trainers.base import Sampling
from trainers.config import TrainConfig
from trainers.engines.lockstep import LockstepEngine, ProcessExchange
from trainers.engines.random import uniforms
from trainers.engines.registry import CheckpointModel, EngineSpec
from trainers.engines.types import Answer, Engine, Generation, Request, StreamingEngine
from trainers.models.loading import exchanged


def check_vllm(config: TrainConfig, processes: int) -> None:
    """Refuses (ConfigError) settings of vLLM that contradict each other, or the number of training processes."""
    if config.vllm_mode == "server" and (config.vllm_sleep or config.vllm_tensor_parallel > 1):
        raise ConfigError(
            "vllm_sleep and vllm_tensor_parallel are for a vLLM within the training processes; with vllm_mode=server "
            "leave them out, and start the server with its own --tensor_parallel_size."
        )
    if processes % config.vllm_tensor_parallel:
        raise ConfigError(
            f"vllm_tensor_parallel={config.vllm_tensor_parallel} processes share a vLLM each, and {processes} train; "
            "take a divisor of their number."
        )


class VllmEngine(StreamingEngine):
    """Sends token prompts to a ``vllm.LLM`` of this process; vLLM's prefix cache serves growing conversations.

    Replies are seeded per request, but reproducible only as far as vLLM's kernels are; on a GPU vLLM draws by a token's
    place in the whole sequence, so prompts of other lengths share no draws. It must be started with
    ``logprobs_mode="processed_logprobs"``, so that they are of the distribution sampled from; ``before_generate`` is
    called before every batch, for instance TRL's weight synchronisation.
    """

    def __init__(
        self, llm: Any, eos_token_ids: Sequence[int], *, before_generate: Callable[[], object] = lambda: None
    ) -> None:
        self.llm = llm
        self._eos = list(eos_token_ids)
        self._before_generate = before_generate

    @classmethod
    def load(cls, model: str, eos_token_ids: Sequence[int], **options: Any) -> VllmEngine:
        """Starts vLLM on a model folder or name, or says (MissingExtraError) how to install it; options are its own."""
        vllm = _import_vllm()
        options = {"logprobs_mode": "processed_logprobs", "skip_tokenizer_init": True, **options}
        return cls(vllm.LLM(model=model, **options), eos_token_ids)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Generates one reply per request, in their order."""
        self._before_generate()
        params = [self._params(request, sampling) for request in requests]
        prompts = [{"prompt_token_ids": list(request.prompt_ids)} for request in requests]
        with _in_words("vLLM"):
            outputs = self.llm.generate(prompts, sampling_params=params, use_tqdm=False)
        return [_reply(output.outputs[0]) for output in outputs]

    def stream(self, requests: Sequence[Request], sampling: Sampling, answer: Answer) -> None:
        """Keeps vLLM's batch full: a conversation goes on as soon as its reply has ended."""
        self._before_generate()
        engine, numbers, under_way = self.llm.llm_engine, count(), dict[str, Request]()
        try:
            while requests or under_way:
                with _in_words("vLLM"):
                    for request in requests:
                        name = str(next(numbers))
                        under_way[name] = request
                        prompt = {"prompt_token_ids": list(request.prompt_ids)}
                        engine.add_request(name, prompt, self._params(request, sampling))
                    # A step moves all requests by a token; those that ended make room for what follows from them.
                    ended = [output for output in engine.step() if output.finished]
                replies = [(under_way.pop(output.request_id), _reply(output.outputs[0])) for output in ended]
                requests = answer(replies) if replies else []
        finally:
            if under_way:
                with suppress(EngineError), _in_words("vLLM"):
                    engine.abort_request(list(under_way))

    def _params(self, request: Request, sampling: Sampling) -> Any:
        return _import_vllm().SamplingParams(
            **_drawing(sampling),
            max_tokens=request.max_tokens,
            seed=turn_seed(request),
            logprobs=0,  # no alternatives: of the token that was drawn alone
            stop_token_ids=self._eos,
            detokenize=False,
        )

    def reset(self) -> None:
        """Takes in the present weights, and drops vLLM's prefix cache."""
        # Here all processes come by, also one that has nothing to generate.
        self._before_generate()
        # A prompt's cached keys and values are those of the weights that computed them.
        self.llm.reset_prefix_cache()


class VllmServerEngine(Engine):
    """Sends token prompts to TRL's ``VLLMClient``; the server chooses the seeds."""

    def __init__(self, client: Any, eos_token_ids: Sequence[int], before_generate: Callable[[], object]) -> None:
        self.client = client
        self._eos = list(eos_token_ids)
        self._before_generate = before_generate

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Generates one reply per request, in their order."""
        self._before_generate()
        # A call has one limit, and the server refuses all of a call in which a prompt leaves no room for it.
        replies = {
            limit: iter(self._within(limit, [request for request in requests if request.max_tokens == limit], sampling))
            for limit in sorted({request.max_tokens for request in requests})
        }
        return [next(replies[request.max_tokens]) for request in requests]

    def _within(self, limit: int, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        with _in_words("The vLLM server"):
            output = self.client.generate(
                prompts=[list(request.prompt_ids) for request in requests],
                n=1,
                **_drawing(sampling),
                max_tokens=limit,
                logprobs=0,
                generation_kwargs={"stop_token_ids": self._eos},
            )
        return [
            Generation(list(ids), [float(entry[0]) for entry in logprobs])
            for _, ids, logprobs in zip(requests, output["completion_ids"], output["logprobs"], strict=True)
        ]


@contextmanager
def replaceable_weights() -> Iterator[None]:
    """Within, a vLLM that starts on a processor keeps weights that a trainer can replace; on a GPU all of them do."""
    try:
        from vllm.model_executor.layers import utils
    except ImportError:
        yield
        return
    packing = utils.dispatch_cpu_unquantized_gemm

    def leave_in_place(layer: Any, remove_weight: bool) -> None:
        from torch.nn import functional

        if layer.weight.ndim == 2:
            layer.cpu_linear = functional.linear
        else:
            packing(layer, remove_weight)

    # Once a layer is loaded, vLLM packs its weights for the processor's kernels. A linear layer's own are dropped, so
    # nothing can be loaded into them again; the output layer's stay and are never read again. No option turns this off.
    with exchanged(utils, "dispatch_cpu_unquantized_gemm", leave_in_place):
        yield


@contextmanager
def _in_words(who: str) -> Iterator[None]:
    try:
        yield
    except SkillCError:
        raise
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EngineError(
            f"{who} failed ({said}). Nothing before the last checkpoint is lost: start it again, and the same command "
            "with resume=auto goes on from there."
        ) from error


def _drawing(sampling: Sampling) -> dict[str, Any]:
    if sampling.greedy:
        return {"temperature": 0.0}
    cut = {"top_p": sampling.top_p, "top_k": sampling.top_k, "min_p": sampling.min_p} if sampling.truncates else {}
    return {"temperature": sampling.temperature, **cut}


def turn_seed(request: Request) -> int:
    """A seed of 31 bits that differs between the turns of one conversation."""
    seed = np.array([request.seed % 2**64], dtype=np.uint64)
    return int(uniforms(seed, np.array([request.stream], dtype=np.uint64))[0] * 2**31)


def engine_of_trl(generation: Any, eos_token_ids: Sequence[int], sync: Callable[[], object], processes: int) -> Engine:
    """The engine over TRL's ``VLLMGeneration``, whose weights ``sync`` renews; in step where processes share one."""
    if generation.mode == "server":
        # TRL connects the first process alone.
        client = getattr(generation, "vllm_client", None)
        if processes == 1:
            return VllmServerEngine(client, eos_token_ids, sync)
        asking = None if client is None else VllmServerEngine(client, eos_token_ids, lambda: None)
        return LockstepEngine(asking, ProcessExchange(first_asks=True), sync)
    if generation.tensor_parallel_size == 1:
        return VllmEngine(generation.llm, eos_token_ids, before_generate=sync)
    spread = VllmEngine(generation.llm, eos_token_ids)
    return LockstepEngine(spread, ProcessExchange(generation.tp_group), sync)


def _reply(completion: Any) -> Generation:
    ids = list(completion.token_ids)
    logprobs = [float(entry[token].logprob) for token, entry in zip(ids, completion.logprobs, strict=True)]
    return Generation(ids, logprobs)


def _import_vllm() -> Any:
    with needs_extra("vllm", "vllm"):
        import vllm
    return vllm


def _backend_arguments(settings: TrainConfig) -> dict[str, Any]:
    return {
        "use_vllm": True,
        "vllm_mode": settings.vllm_mode,
        "vllm_gpu_memory_utilization": settings.vllm_memory,
        "vllm_max_model_length": settings.max_context,
        "vllm_server_base_url": settings.vllm_server,
        "vllm_tensor_parallel_size": settings.vllm_tensor_parallel,
        "vllm_enable_sleep_mode": settings.vllm_sleep,
    }


def _options(settings: TrainConfig, sharing: int = 1) -> dict[str, Any]:
    """Arguments of ``vllm.LLM`` wherever it is started; the engine's own options have the last word.

    Processes that share a vLLM bring as many episodes each.
    """
    revision = settings.revision
    return {
        **({"revision": revision, "tokenizer_revision": revision} if revision else {}),
        "max_num_seqs": settings.max_parallel * sharing,
        "dtype": settings.vllm_dtype,
        "enable_prefix_caching": settings.vllm_prefix_caching,
        **settings.engine_options,
    }


def _for_checkpoint(checkpoint: CheckpointModel) -> Engine:
    settings = checkpoint.settings
    options = {
        "max_model_len": settings.max_context,
        "gpu_memory_utilization": settings.vllm_memory,
        "tensor_parallel_size": settings.vllm_tensor_parallel,
        **_options(settings),
    }
    return VllmEngine.load(settings.model_path, checkpoint.eos_ids, **options)


ENGINE = EngineSpec(
    lambda trainer: engine_of_trl(trainer.server, trainer.eos_ids, trainer.sync, trainer.processes),
    _for_checkpoint,
    _backend_arguments,
    lambda settings: _options(settings, settings.vllm_tensor_parallel),
    exact_logprobs=False,
)
"""Generates with vLLM; its log-probabilities differ from the trainer's by the kernels' rounding."""
