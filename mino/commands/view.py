"""What `ask` shows of an answer, and when: all of it, its first code block, one JSON object; and whether it fits."""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mino.errors import InvalidData, MinoError, Reply
from mino.responses.answer import Answer
from mino.responses.usage import format_usage
from mino.terminal import output
from mino.turn import View

if TYPE_CHECKING:  # most questions need neither
    from mino.formats.fence import FirstBlock
    from mino.responses.fit import AnswerSchema


class Wanted(NamedTuple):
    """What the options of `ask` want of an answer; `schema` comes from the file `schema_file`."""

    at_end: bool = False
    as_json: bool = False
    extract: bool = False
    usage: bool = False
    schema: "AnswerSchema | None" = None
    schema_file: str = ""


class AskView(View):
    """The view of one answer that is `wanted` so, in the conversation `session` (None: the unnamed one, or none)."""

    def __init__(self, stream: output.AnswerStream, wanted: Wanted, session: str | None) -> None:
        super().__init__(stream)
        self._wanted = wanted
        self._session = session
        self._block: FirstBlock | None = None
        self._since = time.monotonic()
        self.as_it_arrives = not (wanted.at_end or wanted.as_json)

    def begin(self) -> None:
        """Forget the block of an earlier attempt, of which nothing was shown."""
        if self._wanted.extract:
            from mino.formats.fence import FirstBlock

            self._block = FirstBlock()

    def show(self, text: str) -> bool:
        """Take a piece of the answer, and show what is wanted of it."""
        return super().show(self._block.feed(text) if self._block else text)

    def finish(self, turn_id: str | None, answer: Answer) -> None:
        """Show the rest, or all of it in one write; check whether the answer is what was asked for."""
        wanted = self._wanted
        text: str | None = answer.shown
        if wanted.extract:
            from mino.formats.fence import first_block

            text = first_block(answer.shown)
        parsed = self._check(turn_id, answer, text) if answer.status == "completed" else None
        if wanted.as_json:
            self.stream.show(output.format_json(answer_json(self._session, turn_id, answer, parsed)))
        elif wanted.at_end:
            self.stream.show(_with_newline(text or ""))
        elif self._block:
            self.stream.show(self._block.end())
        self.stream.end()
        if wanted.usage:
            spent = format_usage(answer.usage) or "the service reports no tokens"
            model = f"{answer.model}: " if answer.model else ""
            output.notice(f"{model}{spent}, {time.monotonic() - self._since:.1f} s")

    def fail(self, turn_id: str | None, failure: MinoError, reply: Reply) -> None:
        """With `--json` a failure of the service is an object too."""
        if self._wanted.as_json:
            self.stream.show(output.format_json(failure_json(self._session, turn_id, failure, reply)))

    def _check(self, turn_id: str | None, answer: Answer, text: str | None) -> Any:
        """The JSON value of an answer that must fit a schema, else None; sets `flaw`."""
        where = f"mino history show --turn {turn_id}" if turn_id else ""
        schema = self._wanted.schema
        if schema and answer.refusal:
            self.flaw = InvalidData("the model refused, and its answer is not JSON", where)
        elif text is None:
            self.flaw = InvalidData("the answer has no fenced code block", where)
        elif schema:
            return self._fit(schema, text if self._wanted.extract else answer.text)
        return None

    def _fit(self, schema: "AnswerSchema", text: str) -> Any:
        from mino.responses.fit import Misfit

        try:
            return schema.check(text)
        except Misfit as misfit:
            hint = "-x checks the code block in the answer" if misfit.is_fenced else "ask again"
            what = f"the answer does not fit '{self._wanted.schema_file}': {misfit.path}: {misfit.reason}"
            self.flaw = InvalidData(what, hint)
        except InvalidData as given_up:
            self.flaw = given_up
        return None


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def answer_json(session: str | None, turn_id: str | None, answer: Answer, parsed: Any) -> dict[str, Any]:
    """`answer` by `schemas/answer.v1.schema.json`; `session` is a name, `turn_id` None if the turn is not saved."""
    return {
        "turn_id": turn_id,
        "session": session,
        "status": answer.status,
        "text": answer.text,
        "parsed": parsed,
        "refusal": answer.refusal,
        "model": answer.model,
        "response_id": answer.response_id,
        "usage": answer.usage,
        "output": answer.output,
        "error": None,
    }


def failure_json(session: str | None, turn_id: str | None, failure: MinoError, reply: Reply) -> dict[str, Any]:
    """A `failure` of the service by the same schema, with the text that had come."""
    error = {"message": failure.message, "http_status": reply.http_status, "retry_after": reply.retry_after}
    nothing = dict.fromkeys(("parsed", "model", "response_id", "usage"))
    return {
        "turn_id": turn_id,
        "session": session,
        "status": "failed",
        "text": reply.text,
        "refusal": False,
        **nothing,
        "output": [],
        "error": error,
    }
