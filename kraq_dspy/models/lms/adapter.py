"""Turns a signature into a prompt, and a reply into values: DSPy's chat format in fewer words.

Same markers as `dspy.ChatAdapter`, so models, demos and fine-tuning rows fit both. `tests/models/lms/test_adapter.py`
holds what each signature may cost.
"""

import copy
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn, get_origin

import dspy
from dspy import ContextWindowExceededError
from dspy.utils.exceptions import AdapterParseError, LMInvalidRequestError, LMServerError, LMUnsupportedFeatureError

from kraq_dspy._internal.both_ways import blocking, is_blocking, result_of
from kraq_dspy._internal.display import whole_text
from kraq_dspy._internal.dspy_internals import (
    CUSTOM_TYPE_START_IDENTIFIER,
    adapter_fallback_scope,
    apply_output_field_defaults,
    format_field_value,
    serialize_for_json,
)
from kraq_dspy.models.lms.enforcement import (
    is_about_schemas,
    known_enforcement,
    needs_bounds,
    schema_refused,
    schema_tried,
)
from kraq_dspy.models.lms.envelope import QUOTED, Flaw, flaws_heard, tell
from kraq_dspy.models.lms.repair import read_reply, repeats_itself
from kraq_dspy.models.lms.schemas import JSON_OBJECT, PLAIN, SECTIONS, Form, about, is_typed, kind, reply_schema

logger = logging.getLogger(__name__)

_SIGNATURES = 256  # whose parts of a prompt are remembered: they are the same in each call
_UNSEEN = "[\\s\u200b-\u200f\u2060\ufeff]*"
MARKER_START = re.compile(rf"[\[［](?={_UNSEEN}[#＃]{_UNSEEN}[#＃])")
TURN = re.compile(
    r"<(?=/?[|｜]/?\w)|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn)>)|<(?=</?SYS>>)|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS)\])",
    re.IGNORECASE,
)
"""Where models' own templates begin or end a turn (ChatML, Llama, Mistral, Gemma, DeepSeek, ...). Servers read such
marks inside a message too."""
Question = tuple[Any, list[Any], dict[str, Any]]
"""What an adapter is asked for: a signature, demonstrations and inputs."""


class UnreadableReplyError(AdapterParseError):
    """A reply that no repair makes fit. `faults` says briefly what was wrong; `is_blank`, that it has no more than the
    marker of the one text that was asked for.

    The message shows the beginning of the reply, `lm_response` has all of it.
    """

    def __init__(
        self, signature: Any, reply: str, values: dict[str, Any], faults: Sequence[str], is_blank: bool = False
    ) -> None:
        super().__init__("KraqAdapter", signature, reply, None, parsed_result=values)  # type: ignore[arg-type]
        self.faults = faults
        self.is_blank = is_blank
        self.message = _briefly(faults, reply)
        self.args = (self.message,)

    @property
    def ran_on(self) -> bool:
        """Whether the reply repeats itself, as small models do until a limit stops them."""
        return repeats_itself(self.lm_response)


class NoAnswerError(UnreadableReplyError):
    """A reply that is no answer by its envelope: refused, withheld, cut off before it was whole, or without any text.
    `flaw` says which."""

    def __init__(self, signature: Any, flaw: Flaw, faults: Sequence[str] = ()) -> None:
        super().__init__(signature, flaw.text, {}, [flaw.words, *faults])
        self.flaw = flaw


class KraqAdapter(dspy.ChatAdapter):
    """A terse `ChatAdapter` for untrusted text and small models.

        dspy.configure(lm=lm, adapter=KraqAdapter())

    Args:
        callbacks: DSPy's callbacks.
        second_try: after an unreadable reply, call the model once more and ask for another form.
        **kwargs: further arguments of DSPy's `ChatAdapter`.

    Raises:
        UnreadableReplyError: when called, if no reply can be read.

    - **Form of a reply.** If the server enforces JSON schemas, a signature with typed fields gets a JSON object under
      its schema (`lms.enforcement`). If the caller wants log-probabilities, the adapter sends no schema, because a
      grammar changes them. In all other cases a reply has one section for each field, under DSPy's field markers.
    - **Untrusted text.** Inside input values the adapter breaks field markers (`[[ ## x` becomes `[( ## x`), the
      marks of chat templates (`<|im_end|>` becomes `< |im_end|>`) and the last sentence of the prompt. So a document
      cannot end its field, write another field or begin a turn. The prompt says that inputs are data.
    - **Repair.** The adapter repairs a reply before it calls the model again (`kraq_dspy.models.lms.repair`). If a
      reply ends in the middle of a list, the adapter keeps the complete items. If the model refused to answer, the
      adapter reports that and does not repeat the call.
    - **Second try.** If a reply under a schema was unreadable, the adapter repeats the call without a schema. If a
      reply without a schema was unreadable, the adapter asks for a JSON object, or for plain text if there is only
      one text field. If only some lists of the second reply are readable, the other lists are empty, and the adapter
      reports that. The adapter never repeats a streamed call.
    """

    def __init__(self, callbacks: list[Any] | None = None, second_try: bool = True, **kwargs: Any) -> None:
        super().__init__(callbacks=callbacks, use_json_adapter_fallback=second_try, **kwargs)
        self._form: Form = SECTIONS
        self._is_second = False

    def __deepcopy__(self, memo: object) -> "KraqAdapter":
        return self  # what differs from call to call is in copies of its own (`_with`)

    async def acall(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        question = signature, demos, inputs
        with adapter_fallback_scope() as progress:
            first, options = self._first_call(lm, lm_kwargs, signature)
            if options is lm_kwargs:
                reply = await first._ask(lm, options, question)
            else:
                reply = await first._ask_held(lm, options, lm_kwargs, question)

            if progress.emitted and reply.error is not None:
                tell(reply.flaw)
                return [_as_it_stands(signature, reply.error)]
            if reply.error is None or reply.is_final or not self.use_json_adapter_fallback:
                return reply.values_or_error(signature)

            second = first._for_second_call(signature)
            return (await second._ask(lm, dict(lm_kwargs), question)).after(reply, signature)

    __call__ = blocking(acall)

    async def _ask(self, lm: Any, options: dict[str, Any], question: Question) -> "_Reply":
        values, error = None, None
        with flaws_heard() as heard:
            try:  # without ChatAdapter's own second call
                ask = dspy.Adapter.__call__ if await is_blocking() else dspy.Adapter.acall
                values = await result_of(ask(self, lm, options, *question))
            except AdapterParseError as unreadable:
                error = unreadable
        return _Reply(values, error, heard[-1] if heard else None)

    async def _ask_held(self, lm: Any, options: dict[str, Any], free: dict[str, Any], question: Question) -> "_Reply":
        """Ask under the schema; where the server refuses it, or breaks over it, ask the same
        without one."""
        try:
            reply = await self._ask(lm, options, question)
        except ContextWindowExceededError:
            raise
        except (LMInvalidRequestError, LMServerError, LMUnsupportedFeatureError) as error:
            if isinstance(error, LMServerError) and known_enforcement(lm) and not is_about_schemas(error):
                raise
            reply = await self._with(SECTIONS)._ask(lm, dict(free), question)
            schema_refused(lm, str(error))
            return reply

        if reply.flaw is None:
            schema_tried(lm, None if reply.error is None else reply.error.lm_response)
        return reply

    def _first_call(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> tuple["KraqAdapter", dict[str, Any]]:
        wants_logprobs = lm_kwargs.get("logprobs", getattr(lm, "kwargs", {}).get("logprobs"))
        if is_typed(_outputs(signature)) and not wants_logprobs and known_enforcement(lm) is not False:
            schema = reply_schema(_outputs(signature), bounded=needs_bounds(lm), longest=_longest(signature))
            if schema is not None:
                named = {"name": signature.__name__[:64], "schema": schema, "strict": True}
                form = {"type": "json_schema", "json_schema": named}
                return self._with(JSON_OBJECT), {**lm_kwargs, "response_format": form}
        return self, lm_kwargs

    def _for_second_call(self, signature: Any) -> "KraqAdapter":
        """Make the adapter that asks again: in a fresh prompt of another form; the faulty reply may
        quote a document."""
        form: Form = JSON_OBJECT
        if self._form is JSON_OBJECT:
            form = SECTIONS
        elif len(signature.output_fields) == 1 and not is_typed(_outputs(signature)):
            form = PLAIN
        second = self._with(form)
        second._is_second = True
        return second

    def _with(self, form: Form) -> "KraqAdapter":
        other = copy.copy(self)
        other._form = form
        return other

    def format_system_message(self, signature: Any) -> str:
        if _own_prompts(signature):
            return str(super().format_system_message(signature))
        return f"{signature.instructions.strip()}\n\n{_field_list(signature, self._form)}"

    def format_user_message_content(
        self, signature: Any, inputs: dict[str, Any], prefix: str = "", suffix: str = "", main_request: bool = False
    ) -> str:
        parts = [prefix]
        for name, field in signature.input_fields.items():
            if name in inputs:
                value = formatted(field, inputs[name])
                if name not in _own_prompts(signature):
                    value = harmless(value)
                parts.append(f"[[ ## {name} ## ]]\n{value}")

        if main_request:
            parts.append(self.user_message_output_requirements(signature))
        return "\n\n".join([*parts, suffix]).strip()

    def user_message_output_requirements(self, signature: Any) -> str:
        return self._form.request(_outputs(signature))

    def format_field_with_value(self, fields_with_values: Any) -> str:
        """Values of demos and of fine-tuning rows; a marker inside one would end it."""
        parts = []
        for field, value in fields_with_values.items():
            text = formatted(field.info, value)
            parts.append(f"[[ ## {field.name} ## ]]\n{text if _has_own_prompt(field.info) else harmless(text)}")
        return "\n\n".join(parts).strip()

    def format_assistant_message_content(
        self, signature: Any, outputs: dict[str, Any], missing_field_message: str | None = None
    ) -> str:
        if self._form is PLAIN:
            [name] = signature.output_fields
            return harmless(str(outputs.get(name, missing_field_message)))
        if self._form is not JSON_OBJECT:
            return str(super().format_assistant_message_content(signature, outputs, missing_field_message))
        values = {name: outputs.get(name, missing_field_message) for name in signature.output_fields}
        return harmless(json.dumps(serialize_for_json(values), ensure_ascii=False))

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Values by output field. Raises UnreadableReplyError for what cannot be read."""
        fields, faults = read_reply(completion, _outputs(signature))
        fields = dict(apply_output_field_defaults(signature, fields))
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        loops = [f"{name}: repeats itself" for name, text in texts.items() if repeats_itself(text)]
        is_first, is_only = self.use_json_adapter_fallback and not self._is_second, len(signature.output_fields) == 1
        if is_first and is_only and [str(value).strip() for value in fields.values()] == [""]:
            raise UnreadableReplyError(signature, completion, fields, ["nothing is written"], is_blank=True)
        if loops or fields.keys() != signature.output_fields.keys():
            raise UnreadableReplyError(signature, completion, fields, faults or loops)
        return fields


ADAPTER = KraqAdapter()
"""The one that is used if nobody configured another."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """What came of one call: values, or why there are none, and what the envelope says."""

    values: list[dict[str, Any]] | None = None
    error: AdapterParseError | None = None
    flaw: Flaw | None = None

    @property
    def read(self) -> dict[str, Any]:
        """What could be read, of one reply."""
        if self.values is not None:
            return self.values[0]
        return dict(getattr(self.error, "parsed_result", None) or {})

    @property
    def is_final(self) -> bool:
        """Whether another call would come to the same end."""
        if self.flaw is None:
            return False
        return self.flaw.why in ("refused", "filtered") or (self.flaw.why == "length" and not self.flaw.text.strip())

    def values_or_error(self, signature: Any) -> list[dict[str, Any]]:
        if self.values is None:
            self._fail(signature, self.flaw)
        tell(self.flaw)
        return self.values

    def after(self, first: "_Reply", signature: Any) -> list[dict[str, Any]]:
        """The values of a second call; if it has none, what the two have together.

        Lists that neither has are empty if another one has something; that is told.
        """
        if self.values is not None:
            return self.values_or_error(signature)

        lists = {name for name, annotation in _outputs(signature).items() if get_origin(annotation) is list}
        together = {**self.read, **first.read}
        missing = [name for name in signature.output_fields if name not in together]
        if not lists.issuperset(missing) or not any(together.get(name) for name in lists):
            self._fail(signature, self.flaw or first.flaw)
        if missing:
            faults = "; ".join(getattr(self.error or first.error, "faults", ()))
            tell(Flaw("unreadable", f"{', '.join(missing)} could not be read: {faults or 'it is empty'}"))
        else:
            tell(self.flaw)
        return [{**together, **{name: [] for name in missing}}]

    def _fail(self, signature: Any, flaw: Flaw | None) -> NoReturn:
        """Raise what says why there are no values; never an error as its own cause, which nobody could follow."""
        faults = getattr(self.error, "faults", ())
        if flaw is not None:
            raise NoAnswerError(signature, flaw, faults) from self.error
        if isinstance(self.error, UnreadableReplyError):
            raise self.error
        raise UnreadableReplyError(signature, "", {}, faults or ["it is empty"]) from self.error


def _as_it_stands(signature: Any, error: AdapterParseError) -> dict[str, Any]:
    """A streamed reply that cannot be asked for again: where one text is wanted, it is that text.

    Raises the error for any other.
    """
    fields = _outputs(signature)
    text = error.lm_response.strip()
    if getattr(error, "is_blank", False):
        return dict(error.parsed_result)
    if list(fields.values()) != [str] or not text or MARKER_START.search(text):
        raise error
    return dict.fromkeys(fields, text)


@lru_cache(maxsize=_SIGNATURES)
def _field_list(signature: Any, form: Form) -> str:
    """What a prompt says of a signature's fields, and of the form of a reply."""
    inputs = [f"`{name}`{text}" for name, field in signature.input_fields.items() if (text := _described(name, field))]
    outputs = [
        f"{number}. `{name}` ({kind(field.annotation)}){_described(name, field)}"
        for number, (name, field) in enumerate(signature.output_fields.items(), 1)
    ]
    return "\n".join([*inputs, "Your output fields are:", *outputs, form.rule, "", form.layout(_outputs(signature))])


@lru_cache(maxsize=_SIGNATURES)
def _own_prompts(signature: Any) -> frozenset[str]:
    """The fields that write their part of the prompt themselves."""
    return frozenset(name for name, field in signature.fields.items() if _has_own_prompt(field))


@lru_cache(maxsize=_SIGNATURES)
def _outputs(signature: Any) -> Mapping[str, Any]:
    return MappingProxyType({name: field.annotation for name, field in signature.output_fields.items()})


def _longest(signature: Any) -> dict[str, int]:
    """Characters of those outputs whose annotation says how many: `Annotated[str, pydantic.Field(max_length=150)]`."""
    longest = {}
    for name, field in signature.output_fields.items():
        for limit in field.metadata:
            if hasattr(limit, "max_length"):
                longest[name] = limit.max_length
    return longest


def _briefly(faults: Sequence[str], reply: str) -> str:
    """Say what was wrong, and how the reply begins."""
    begins = " ".join(reply[: 2 * QUOTED].split())[:QUOTED]
    more = f"… ({len(reply):,} characters)" if len(reply) > len(begins) else ""
    return ("; ".join(faults) or "it is empty") + (f". The reply: {begins!r}{more}" if begins else "")


_REQUEST = re.compile(r"(Respond)(?=\s+with\s+the\s+corresponding\s+output\s+fields)", re.IGNORECASE)


def formatted(field: Any, value: Any) -> str:
    """The value as DSPy's `format_field_value` writes it.

    That function makes a pydantic adapter each time, which texts and lists of texts, most of all inputs, do not need.
    """
    if type(value) is str:
        return value
    if type(value) is list and field.annotation is not str and all(type(item) is str for item in value):
        return json.dumps(value, ensure_ascii=False)
    return str(format_field_value(field_info=field, value=value))


def harmless(text: str) -> str:
    """The text with nothing in it that DSPy or a model would take for a marker, turn, attachment or request."""
    text = MARKER_START.sub("(", whole_text(text))  # no server takes a half of a character, which texts may hold
    text = TURN.sub(lambda mark: f"{mark[0]} ", text)
    text = _REQUEST.sub(r"\1,", text)
    return text.replace(CUSTOM_TYPE_START_IDENTIFIER, CUSTOM_TYPE_START_IDENTIFIER.replace("<<", "< <"))


def _described(name: str, field: Any) -> str:
    """The field's description and limits, after a colon; empty if it has none of its own."""
    extra = field.json_schema_extra
    parts = [extra.get("desc") or "", about(field.annotation), extra.get("constraints") or ""]
    parts = [text for text in parts if text and text != f"${{{name}}}"]
    return f": {'; '.join(parts)}" if parts else ""


def _has_own_prompt(field: Any) -> bool:
    """Tools, images, histories and the like describe themselves; reasoning is text."""
    types = dspy.Type.extract_custom_type_from_annotation(field.rebuild_annotation())
    return any(custom is not dspy.Reasoning for custom in types)
