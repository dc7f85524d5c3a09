"""An agent that is a chat model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testgrad.agents.command import fenced
from testgrad.agents.extract import extract_code

if TYPE_CHECKING:
    from testgrad import FeedbackEntry

_SYSTEM = (
    "You write {language} programs that are judged by tests. Answer with the complete program"
    " in one fenced code block, nothing left out. When you are shown failing tests, find the"
    " cause and answer with the complete corrected program."
)


class AnswerMissing(RuntimeError):
    """The endpoint answered without any text."""


class ChatAgent:
    """Asks a chat model for the next program.

    The messages are the system prompt, the task, and the last programs with the feedback on each;
    the program is taken from the answer by `extract_code`. Retries and time limits are those of
    the client: set them there.

    Args:
        model: name of the model at the endpoint.
        base_url: address of the endpoint; None is the client's default.
        api_key: key for the endpoint; None lets the client find it. Local servers take any.
        system: the system prompt; None is a short one that names the language.
        language: language of the program.
        temperature: sampling temperature; None leaves it to the endpoint.
        max_chars: longest feedback on one program, in characters.
        max_history: how many of the last programs are shown, 1 or more.
        client: a ready `openai.OpenAI` client, instead of `base_url` and `api_key`.
        options: further arguments of `chat.completions.create`, such as ``max_tokens``.

    Raises:
        ImportError: when there is no client and openai is not installed.
        AnswerMissing: from a call, when the answer holds no text.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        language: str = "python",
        temperature: float | None = None,
        max_chars: int = 8000,
        max_history: int = 3,
        client: Any = None,
        **options: Any,
    ) -> None:
        if max_history < 1:
            raise ValueError(f"max_history must be 1 or more, got {max_history}")
        self._client = _connect(base_url, api_key) if client is None else client
        self._model, self._language = model, language
        self._system = _SYSTEM.format(language=language) if system is None else system
        self._max_chars, self._max_history = max_chars, max_history
        self._options = dict(options)
        if temperature is not None:
            self._options["temperature"] = temperature

    def __call__(self, history: Sequence[FeedbackEntry], task: object = None) -> str:
        """Ask once and return the program in the answer."""
        completion = self._client.chat.completions.create(
            model=self._model, messages=self.messages(history, task), **self._options
        )
        choice = completion.choices[0] if completion.choices else None
        text = choice.message.content if choice is not None else None
        if not text:
            reason = choice.finish_reason if choice is not None else "no choices"
            raise AnswerMissing(
                f"{self._model}: the answer holds no text (finish reason: {reason})"
            )
        return extract_code(text, self._language)

    def messages(
        self, history: Sequence[FeedbackEntry], task: object = None
    ) -> list[dict[str, str]]:
        """What is sent for a history and a task: role and content of each message."""
        request = "Write the program." if task is None else str(task)
        messages = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": request},
        ]
        for entry in history[-self._max_history :]:
            program = fenced(entry.submission.code, self._language)
            feedback = entry.to_prompt(max_chars=self._max_chars)
            messages.append({"role": "assistant", "content": program})
            messages.append({"role": "user", "content": feedback})
        return messages


def _connect(base_url: str | None, api_key: str | None) -> Any:
    try:
        from openai import OpenAI
    except ImportError as error:
        raise ImportError(
            "ChatAgent needs the openai client: pip install 'testgrad[chat]', or pass client="
        ) from error
    return OpenAI(base_url=base_url, api_key=api_key)
