"""Who writes skills, plans and facts from episodes: rules, or a language model whose replies are read strictly."""

from trainers.writers.base import AgentWriter, AnswerChats, Draft, SilentWriter, Writer
from trainers.writers.by_rule import StepWriter, supported_steps
from trainers.writers.llm import LLMWriter, ModelWriter, NotedWriter, PolicyWriter
from trainers.writers.replies import Decision, Edit

__all__ = [
    "AgentWriter",
    "AnswerChats",
    "Decision",
    "Draft",
    "Edit",
    "LLMWriter",
    "ModelWriter",
    "NotedWriter",
    "PolicyWriter",
    "SilentWriter",
    "StepWriter",
    "Writer",
    "supported_steps",
]
