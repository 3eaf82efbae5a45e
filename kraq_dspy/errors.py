"""Shows the whole error tree on one page. Every message says what is wrong, what was expected and what to do next."""

import difflib
import errno
import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class KraqError(Exception):
    """Anything that this library raises on purpose.

    try:
        space = kraq.Workspace.open("poets.kraq")
    except kraq.KraqError as error:
        print(error)  # what is wrong, what was expected, what to do next
    """


class ConfigError(KraqError):
    """A setting that is unknown, of the wrong type or out of range."""


class UntrustedError(KraqError):
    """An index, or a kraq.toml of the current folder, names an address or a key that the user has not agreed to."""


class ScopeError(KraqError):
    """An index that says who may read it is asked by nobody in particular, or for what its scope does not allow."""


class CorpusError(KraqError):
    """No usable text: the path does not exist, or every file in it was refused."""


class IndexStateError(KraqError):
    """An index that is missing, unfinished, damaged, of another schema, or that would be overwritten."""


class RemovedDocumentsError(IndexStateError):
    """A build would remove documents from an index, and was not told to."""


class IndexLockedError(IndexStateError):
    """Another process is changing the index."""


class EncoderMismatchError(IndexStateError):
    """The index was built with another sentence encoder than the one it was opened with."""


class UnknownRecordError(IndexStateError, KeyError):
    """An id that is not in the index."""

    __str__ = Exception.__str__  # KeyError would show the repr


class ModelError(KraqError):
    """A language model or an encoder that cannot be reached, or that cannot do what was asked of it."""


class UnembeddableError(ModelError):
    """Texts that an encoder made no vectors of, beside others that it did.

    `vectors` has a row for each text, zeros for those; `reasons` says by place why.
    """

    def __init__(self, message: str, vectors: Any, reasons: Mapping[int, str]) -> None:
        super().__init__(message)
        self.vectors = vectors
        self.reasons = reasons


class MissingLogprobsError(ModelError):
    """A model whose answers carry no token log-probabilities, where a score needs them."""


class BudgetExceededError(ModelError):
    """The run reached the calls, tokens or cost that it was allowed; what was paid for is kept."""


class ServerDownError(ModelError):
    """Many calls in a row failed to reach the model server."""


class ExchangeError(KraqError):
    """A file of another system (GraphRAG) that cannot be read, lacks columns or contradicts itself."""


class StateError(KraqError):
    """A saved program state that does not fit the program."""


class CatalogueError(KraqError):
    """A catalogue of prepared answers that has no such entry, or a file of entries that cannot be read."""


class CatalogueConflictError(CatalogueError):
    """A question that the catalogue answers already, with another answer."""


class WorseProgramError(KraqError):
    """An optimized program that scores lower than the one it was made from; it is saved only when forced."""


class TrainingError(KraqError):
    """Rows, a model or a machine with which nothing can be fine-tuned."""


class EvaluationError(KraqError):
    """Gold data or predictions from which a metric cannot be computed."""


class MissingExtraError(KraqError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: pip install 'kraq-dspy[{extra}]'"
            f"{_CPU_FIRST if package == 'torch' else ''}"
        )


_CPU_FIRST = (
    ". Without a GPU, install PyTorch's build for CPUs before it (pytorch.org, Get Started, Compute Platform CPU), "
    "else pip brings some gigabytes of CUDA"
)


@contextmanager
def needs(package: str, extra: str, purpose: str) -> Iterator[None]:
    """An import that fails in the block says which extra brings the package, or why one that is there cannot be loaded:
    too little memory, a library that lacks."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, extra, purpose) from error
    except ImportError as error:
        why = f" {TOO_LITTLE_MEMORY}" if lacks_memory(error) else ""
        raise KraqError(f"{purpose} needs the package {package!r}, which cannot be loaded: {error}.{why}") from error


def import_extra(package: str, extra: str, purpose: str) -> Any:
    """A module of an optional package. Raises MissingExtraError."""
    with needs(package, extra, purpose):
        return importlib.import_module(package)


TOO_LITTLE_MEMORY = "The memory that this process may use is too small (ulimit -v, or a container's limit)."
_OF_MEMORY = ("failed to map segment", "cannot allocate memory", "can't start new thread", "memory allocation")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether the error, or one behind it, came of too little memory: Python's own, the system's, that of a library
    which cannot be mapped, or of a thread that has no room for its stack.

    >>> lacks_memory(ImportError("libtorch.so: failed to map segment from shared object"))
    True
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(lacks_memory, error.exceptions)):
            return True
        if isinstance(error, ImportError | OSError | RuntimeError) and any(
            words in str(error).lower() for words in _OF_MEMORY
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def counted(number: int, what: str) -> str:
    """1 and "passage" as "1 passage", 2000 as "2,000 passages"; "entry" becomes "entries"."""
    many = f"{what[:-1]}ies" if what.endswith(("ty", "ry")) else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'dense'?)" for a name near a known one, else nothing: the middle of a message."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
