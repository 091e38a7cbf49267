"""Who writes skills, plans and facts from episodes: rules, or a language model whose replies are read strictly."""

from trainers.writers.base import AgentWriter, AnswerChats, Decision, Draft, Edit, Writer
from trainers.writers.by_rule import StepWriter, supported_steps
from trainers.writers.llm import LLMWriter, ModelWriter, NotedWriter, PolicyWriter

__all__ = ["AgentWriter", "AnswerChats", "Decision", "Draft", "Edit", "Writer"]
__all__ += ["LLMWriter", "ModelWriter", "NotedWriter", "PolicyWriter"]
__all__ += ["StepWriter", "supported_steps"]
