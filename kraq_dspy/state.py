"""Saves and loads states: what an optimizer made of a program, as JSON that says where it comes from.

A state holds the instructions and the demonstrations of some predictors, and for each the version of the signature that
it was made for. It is put into any program that has such a predictor: one step's state goes into the whole pipeline.
"""

import dataclasses
import inspect
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from types import MethodType
from typing import Annotated, Any, get_args, get_origin

import dspy
from pydantic import Field, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import blocking
from kraq_dspy._internal.dspy_internals import thawed
from kraq_dspy._internal.files import replaced
from kraq_dspy._internal.options import type_adapter
from kraq_dspy.errors import StateError

FORMAT = "kraq program state"
FORMAT_VERSION = 1
_MOST_BYTES = 256 << 20
NAMELESS = "StringSignature"  # what DSPy calls a signature that is no class of somebody's


class SavedSignature(TypedDict):
    """What a predictor was made for."""

    name: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    instructions: str


class SavedPredictor(TypedDict):
    """What is kept of a predictor."""

    signature: SavedSignature
    instructions: str
    fields: dict[str, dict[str, str]]
    demos: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ProgramState:
    """A state as it is in its file. `provenance` says what made it; `predictors` are by name."""

    program: str
    predictors: Annotated[Mapping[str, SavedPredictor], Field(min_length=1)]
    provenance: Mapping[str, Any]


class SavableModule(dspy.Module):
    """A module with `save` and `load` for the files of `kraq optimize`. Its `forward` is made of its `aforward`.

    `save` includes compiled parts of the module, which DSPy's own `save` leaves out. `save` does not include models.
    """

    __signature__: inspect.Signature | None

    def __init_subclass__(cls, **options: Any) -> None:
        """Give `help()` the signature of the constructor, which DSPy's metaclass hides, and an asynchronous body its
        synchronous form."""
        super().__init_subclass__(**options)
        if "aforward" in vars(cls) and "forward" not in vars(cls):
            cls.forward = blocking(cls.aforward)
        cls.__signature__ = inspect.signature(MethodType(cls.__init__, cls))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.__signature__ = None  # of a call, which takes other arguments than the constructor

    def save(self, path: str | Path, save_program: bool = False, modules_to_serialize: Any = None) -> None:
        """The state as JSON. Raises StateError for another suffix than .json, and for `save_program=True`."""
        if save_program or modules_to_serialize:
            raise StateError(
                "save_program=True pickles the whole program, its index and its models with it, and a pickle runs what "
                "is in it when it is loaded. Save the state, program.save('state.json'); make the program as before; "
                "and load the state into it, program.load('state.json')."
            )
        if Path(path).suffix != ".json":
            raise StateError(f"{str(path)!r} does not end with .json, and a state is saved as JSON. Give another name.")
        save_state(state_of(self, {"library_version": version("kraq-dspy")}), Path(path))

    def load(self, path: str | Path, *arguments: Any, **options: Any) -> None:
        """A state of this program or of one of its steps. Raises StateError when it does not fit."""
        load_state(self, Path(path))

    def load_state(self, state: dict[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """Load as DSPy does, but models stay as they are: those that the state names are left out,
        with their servers, unless `allow_unsafe_lm_state` says that it may name them."""
        if allow_unsafe_lm_state:
            super().load_state(state, allow_unsafe_lm_state=True)
            return

        own = {name: predictor.lm for name, predictor in self.named_predictors()}
        without = {
            name: {**part, "lm": None} if isinstance(part, dict) and "lm" in part else part
            for name, part in state.items()
        }
        super().load_state(without)
        for name, predictor in self.named_predictors():
            predictor.lm = own.get(name)


def state_of(program: dspy.Module, provenance: Mapping[str, Any]) -> ProgramState:
    """Read the instructions and demonstrations of all predictors of a program, also of compiled parts.

    Args:
        program: the program.
        provenance: facts about the optimization. Only the last part of a file path is kept.

    Returns:
        The state. Demonstrations keep only the fields of the signature. The state has no models.

    >>> list(state_of(dspy.Predict("question -> answer"), {}).predictors)
    ['self']
    """
    with thawed(program):
        predictors = {name: _predictor_state(predictor) for name, predictor in program.named_predictors()}
    return ProgramState(type(program).__name__, predictors, _without_paths(dict(provenance)))


def save_state(state: ProgramState, path: Path) -> None:
    """Write a state to a file, whole or not at all.

    Args:
        state: the state.
        path: the JSON file.

    >>> save_state(state_of(dspy.Predict("question -> answer"), {}), Path("state.json"))
    >>> read_state(Path("state.json")).program
    'Predict'
    """
    body = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "program": state.program,
        "provenance": state.provenance,
        "predictors": state.predictors,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft:
        draft.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", "utf-8")


def read_state(path: Path) -> ProgramState:
    """Read an optimized program from a file of `save_state`.

    Raises StateError if the file is missing, too large or damaged, or if `save_state` did not write the file.
    """
    try:
        if path.exists() and not path.is_file():
            raise StateError(f"{str(path)!r} is no file; `kraq optimize --out FILE` writes a program state.")
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise StateError(f"{str(path)!r} has {size:,} bytes; a program state has at most {_MOST_BYTES:,}.")
        body = from_json(path.read_bytes())
    except OSError as error:
        raise StateError(f"Cannot read the program state {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:  # a depth of more than 200 among them
        raise StateError(f"{str(path)!r} is no program state: it is not JSON ({error}).") from error

    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise StateError(
            f"{str(path)!r} is no program state of this library; `kraq optimize --out FILE` writes one. "
            "A file of DSPy's own save() is loaded by dspy.Module.load(program, path)."
        )
    if body.get("format_version") != FORMAT_VERSION:
        raise StateError(
            f"{str(path)!r} has the format version {body.get('format_version')!r}; this library reads "
            f"{FORMAT_VERSION}. Load it with the library that wrote it, or optimize again."
        )

    try:
        state: ProgramState = type_adapter(ProgramState).validate_python({"program": "", "provenance": {}, **body})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StateError(
            f"{str(path)!r} is damaged: {place}: {first['msg']}. Restore it from a copy, or run `kraq optimize` again."
        ) from error
    return state


def load_state(program: dspy.Module, path: str | Path) -> ProgramState:
    """Load a file of `save_state` into a program.

    Args:
        program: the program. If the state does not fit, the program does not change.
        path: the JSON file.

    Returns:
        The state.

    Raises:
        StateError: if the state does not fit the program.

    >>> load_state(program, "answering.json").provenance["optimizer"]  # doctest: +SKIP
    'mipro'
    """
    path = Path(path)
    state = read_state(path)
    apply_state(program, state, source=path.name)
    return state


def apply_state(program: dspy.Module, state: ProgramState, *, source: str = "The state") -> None:
    """Put saved instructions and demonstrations into the predictors of a program. Models do not change.

    Args:
        program: the program.
        state: the state. A saved predictor goes to the predictor with the same name and signature. If there is none,
            it goes to all predictors with the same signature.
        source: the name of the state in messages.

    Raises:
        StateError: if the program has no predictor with the signature, or the signature has changed.

    >>> tuned, fresh = dspy.Predict("question -> answer"), dspy.Predict("question -> answer")
    >>> tuned.demos = [dspy.Example(question="Which city?", answer="Oslo")]
    >>> apply_state(fresh, state_of(tuned, {}))
    >>> fresh.demos[0]["answer"]
    'Oslo'
    """
    with thawed(program):
        own = dict(program.named_predictors())
    changes = []
    for name, saved in state.predictors.items():
        for place, predictor in _places(own, name, saved, type(program).__name__, source).items():
            changes.append((predictor, *_learned(place, predictor, saved, source)))
    for predictor, signature, demos in changes:
        predictor.signature, predictor.demos = signature, demos


class StepStates:
    """States of any number of steps, which go into whatever program asks one of them.

    `LanguageModels.states` holds those of an open index; each program that gets its models from there is given them.

    >>> bool(StepStates())
    False
    """

    def __init__(self, files: Sequence[str | Path] = ()) -> None:
        """Raises StateError for a file that is no state, and TypeError for one name in place of a list."""
        if isinstance(files, str | Path):
            raise TypeError(f"optimized is {files!r:.80}; expected a list of files.")
        self.by_file = {Path(file): read_state(Path(file)) for file in files}

    def __bool__(self) -> bool:
        return bool(self.by_file)

    def apply(self, program: dspy.Module) -> None:
        """Put into the program what is there of its steps. Raises StateError for another version of a signature."""
        asked = signatures_of(program) if self.by_file else frozenset()
        for file, state in self.by_file.items():
            fitting = {name: saved for name, saved in state.predictors.items() if saved["signature"]["name"] in asked}
            if fitting:
                apply_state(program, dataclasses.replace(state, predictors=fitting), source=file.name)

    def require_asked(self, programs: Sequence[dspy.Module], asker: str, names: Collection[str] = ()) -> None:
        """Raise StateError for a step that none of the programs asks and whose signature has none of the names."""
        asked = frozenset(names).union(*map(signatures_of, programs))
        for file, state in self.by_file.items():
            for saved in state.predictors.values():
                signature = saved["signature"]["name"]
                if signature not in asked:
                    raise StateError(
                        f"{file.name} was made for {signature}, which {asker} does not ask; its signatures are: "
                        f"{', '.join(sorted(each for each in asked if each in signatures.NAMES)) or 'none'}. The guide "
                        "on optimizing has a table of what asks which step."
                    )


def signatures_of(program: dspy.Module) -> frozenset[str]:
    """The names by which states know what the program asks: of its signatures, or their fields if they have no name."""
    with thawed(program):
        predictors = [predictor for _, predictor in program.named_predictors()]
    names = {base_signature(predictor)[0] for predictor in predictors}
    return frozenset(names | {str(predictor.signature.signature) for predictor in predictors})


def base_signature(predictor: dspy.Predict) -> tuple[str, Any]:
    """Name and class of the signature that the predictor was written with, before any optimizer.

    DSPy's copies with other instructions have no name: those are this library's where fields and types are the same.
    """
    signature = predictor.signature
    named = [str(signature.__name__)] if signature.__name__ != NAMELESS else signatures.NAMES
    for name in named:
        known = getattr(signatures, name, None)
        if known is not None and _kinds(known) == _kinds(signature):
            return name, known
    return named[0] if len(named) == 1 else str(signature.signature), signature


def describe_signature(predictor: dspy.Predict) -> SavedSignature:
    """Name, fields with their types, and instructions of the base signature.

    A signature that is not this library's is known by its fields alone, since its instructions may be optimized ones.
    """
    name, base = base_signature(predictor)
    ours = getattr(signatures, name, None)
    instructions = base.instructions if ours is not None and base is ours else ""
    kinds = _kinds(base)
    return SavedSignature(name=name, inputs=kinds["inputs"], outputs=kinds["outputs"], instructions=instructions)


def _predictor_state(predictor: dspy.Predict) -> SavedPredictor:
    fields = predictor.signature.fields
    words_of_fields = {}
    for name, info in fields.items():
        words_of_fields[name] = {part: info.json_schema_extra[part] for part in ("prefix", "desc")}

    demos = []
    for demo in predictor.demos:
        values = {}
        for name in fields:
            if name in demo:
                adapter = type_adapter(fields[name].annotation)
                values[name] = adapter.dump_python(demo[name], mode="json", warnings=False)
        demos.append(values)

    return SavedPredictor(
        signature=describe_signature(predictor),
        instructions=predictor.signature.instructions,
        fields=words_of_fields,
        demos=demos,
    )


def _places(
    own: Mapping[str, dspy.Predict], name: str, saved: SavedPredictor, program: str, source: str
) -> dict[str, dspy.Predict]:
    signature = saved["signature"]["name"]
    names = {place: base_signature(predictor)[0] for place, predictor in own.items()}
    same = {
        place: predictor
        for place, predictor in own.items()
        if signature in (names[place], str(predictor.signature.signature))  # the latter if it was saved without a name
    }

    if not same:
        raise StateError(
            f"{source} was made for {signature}, which {program} does not ask; its signatures are: "
            f"{', '.join(sorted(set(names.values()))) or 'none'}. Load it into a program with that step."
        )

    named = {place: predictor for place, predictor in same.items() if place == name or place.endswith(f".{name}")}
    return named or same


def _learned(name: str, predictor: dspy.Predict, saved: SavedPredictor, source: str) -> tuple[Any, list[dspy.Example]]:
    """The signature and the demonstrations that the saved state gives the predictor `name`."""
    now = describe_signature(predictor)
    if differences := _differences(saved["signature"], now):
        raise StateError(
            f"{source} was made for another version of {now['name']}: {differences}. Its "
            "instructions and demonstrations may not fit the current step: run `kraq optimize` again, or use "
            "the library version that made it (see its provenance)."
        )

    try:
        signature = predictor.signature.with_instructions(saved["instructions"])
        for field, texts in saved["fields"].items():
            signature = signature.with_updated_fields(field, prefix=texts["prefix"], desc=texts["desc"])
        signature.__name__ = predictor.signature.__name__  # which DSPy drops from a copy
        demos = []
        for demo in saved["demos"]:  # with records where the signature has records, so that a prompt reads as it did
            kinds = {field: type_adapter(predictor.signature.fields[field].annotation) for field in demo}
            values = {field: kinds[field].validate_python(value) for field, value in demo.items()}
            demos.append(dspy.Example(augmented=True, **values))
        return signature, demos
    except (KeyError, ValueError) as error:  # pydantic's among them
        raise StateError(f"{source} is damaged: predictor {name!r}: {type(error).__name__}: {error}") from error


def _differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in words what differs; "" if the signature is the same, the order of its fields too,
    which matters to a model."""
    changes = []
    for side in ("inputs", "outputs"):
        before, after = (
            ", ".join(f"{name}: {kind}" for name, kind in signature[side].items()) for signature in (saved, now)
        )
        if before != after:
            changes.append(f"its {side} were {before}, and are {after}")
    if saved["instructions"] != now["instructions"]:
        changes.append("the instructions that it started from were rewritten")
    return "; ".join(changes)


def _kinds(signature: Any) -> dict[str, dict[str, str]]:
    """The types of the fields by their names, in order: what tells one signature from another of its name."""
    sides = {"inputs": signature.input_fields, "outputs": signature.output_fields}
    return {side: {name: _kind(info.annotation) for name, info in fields.items()} for side, fields in sides.items()}


def _kind(annotation: Any) -> str:
    """A type in words, records with their fields: what a model is told to produce."""
    arguments = get_args(annotation)
    if arguments:
        origin = getattr(get_origin(annotation), "__name__", str(get_origin(annotation)))
        return f"{origin}[{', '.join(_kind(argument) for argument in arguments)}]"
    if is_dataclass(annotation):
        parts = ", ".join(f"{part.name}: {getattr(part.type, '__name__', part.type)}" for part in fields(annotation))
        return f"{getattr(annotation, '__name__', annotation)}({parts})"
    return getattr(annotation, "__name__", repr(annotation))


_ROOTED = re.compile(r"(?<![\w.~-])(?:[A-Za-z]:[\\/]|~?/)(?:[^\s\\/'\",:;]+[\\/])*([^\s\\/'\",:;]+)")


def _without_paths(value: Any) -> Any:
    """The value with absolute paths cut to their last part; addresses of servers are not paths."""
    if isinstance(value, str):
        return value if "://" in value else _ROOTED.sub(lambda path: path.group(1), value)
    if isinstance(value, Mapping):
        return {key: _without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_paths(inner) for inner in value]
    return value
