"""Agents for the loop: callables ``(history, task) -> str`` that propose the next program.

`RepairAgent` needs no model, `ScriptedAgent` replays answers, `CommandAgent` runs a command-line
agent, `ChatAgent` asks a model behind an OpenAI-compatible endpoint.
"""

from testgrad.agents.chat import AnswerMissing, ChatAgent
from testgrad.agents.command import CommandAgent, CommandFailed
from testgrad.agents.edits import describe_edit
from testgrad.agents.extract import extract_code
from testgrad.agents.repair import RepairAgent, SearchExhausted
from testgrad.agents.scripted import AnswersExhausted, ScriptedAgent

__all__ = [
    "AnswerMissing",
    "AnswersExhausted",
    "ChatAgent",
    "CommandAgent",
    "CommandFailed",
    "RepairAgent",
    "ScriptedAgent",
    "SearchExhausted",
    "describe_edit",
    "extract_code",
]
