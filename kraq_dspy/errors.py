"""Shows the whole error tree on one page. Every message says what is wrong, what was expected and what to do next."""

import difflib
import errno
import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = [
    "BudgetExceededError",
    "ConfigError",
    "CorpusError",
    "EncoderMismatchError",
    "EvaluationError",
    "ExchangeError",
    "FaqConflictError",
    "FaqError",
    "IndexLockedError",
    "IndexStateError",
    "KraqError",
    "MissingExtraError",
    "MissingLogprobsError",
    "ModelError",
    "RemovedDocumentsError",
    "ScopeError",
    "ServerDownError",
    "StateError",
    "TrainingError",
    "UnembeddableError",
    "UnknownRecordError",
    "UntrustedError",
    "WorseProgramError",
]  # fmt: skip


class KraqError(Exception):
    """The base of every error that this library raises on purpose.

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
    """A question to an index with labels has no scope, or the scope does not allow the request."""


class CorpusError(KraqError):
    """A corpus without usable text: the path does not exist, or kraq rejected every file."""


class IndexStateError(KraqError):
    """An index that is missing, unfinished, damaged, of another schema, or that would be overwritten."""


class RemovedDocumentsError(IndexStateError):
    """A build would remove documents from an index without `replace`."""


class IndexLockedError(IndexStateError):
    """Another process is changing the index."""


class EncoderMismatchError(IndexStateError):
    """The sentence encoder that opens the index is not the encoder that made the index."""


class UnknownRecordError(IndexStateError, KeyError):
    """An id that is not in the index."""

    __str__ = Exception.__str__  # KeyError would show the repr


class ModelError(KraqError):
    """A language model or an encoder that does not answer, or that cannot do what a step needs."""


class UnembeddableError(ModelError):
    """An encoder could not embed some of the texts.

    `vectors` has a row for each text; the rows of failed texts are zeros. `reasons` has the reason for each failed
    text, by the position of the text.
    """

    def __init__(self, message: str, vectors: Any, reasons: Mapping[int, str]) -> None:
        super().__init__(message)
        self.vectors = vectors
        self.reasons = reasons


class MissingLogprobsError(ModelError):
    """A score needs log-probabilities of tokens, but the model returns none."""


class BudgetExceededError(ModelError):
    """The run reached its limit of calls, tokens or cost. kraq keeps the paid replies."""


class ServerDownError(ModelError):
    """Many calls in a row failed to reach the model server."""


class ExchangeError(KraqError):
    """A file of another system (GraphRAG) that is unreadable, misses columns or contradicts
    itself."""


class StateError(KraqError):
    """An optimized program that does not fit the program."""


class FaqError(KraqError):
    """An FAQ cache of prepared answers that has no such entry, or a file of entries that cannot be read."""


class FaqConflictError(FaqError):
    """A question that the FAQ cache answers already, with another answer."""


class WorseProgramError(KraqError):
    """An optimized program scores lower than the original program. kraq saves it only with `force`."""


class TrainingError(KraqError):
    """Examples, a model or a machine that cannot be used for fine-tuning."""


class EvaluationError(KraqError):
    """Gold data or predictions that do not suffice to compute a metric."""


class MissingExtraError(KraqError, ImportError):
    """A package that a function needs is not installed.

    Args:
        package: the name of the package.
        extra: the extra of kraq-dspy that installs the package; "" for a package of the default installation.
        purpose: what needs the package.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        install = f"pip install 'kraq-dspy[{extra}]'" if extra else "pip install kraq-dspy"
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: {install}{_TO_KNOW_FIRST.get(package, '')}"
        )


_IS_GPL = ". The license of igraph, which this installs, is the GPL"
_TO_KNOW_FIRST = {
    "torch": (
        ". Without a GPU, install PyTorch's build for CPUs before it (pytorch.org, Get Started, Compute Platform CPU), "
        "otherwise pip downloads some gigabytes of CUDA"
    ),
    "igraph": _IS_GPL,
    "cdlib": _IS_GPL,
}


@contextmanager
def needs(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Make an import that fails in the block say which extra installs the package ("": none, it comes with
    the library), or why an installed one does not load: too little memory, a missing library."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, extra, purpose) from error
    except ImportError as error:
        why = f" {TOO_LITTLE_MEMORY}" if lacks_memory(error) else ""
        raise KraqError(f"{purpose} needs the package {package!r}, which cannot be loaded: {error}.{why}") from error


def import_extra(package: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package. Raises MissingExtraError."""
    with needs(package, extra, purpose):
        return importlib.import_module(package)


TOO_LITTLE_MEMORY = "The memory that this process may use is too small (ulimit -v, or a container's limit)."
_OF_MEMORY = ("failed to map segment", "cannot allocate memory", "can't start new thread", "memory allocation")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether too little memory caused the error, or one behind it: in Python, in the system, for a
    library that cannot be mapped, or for the stack of a thread.

    >>> lacks_memory(ImportError("libtorch.so: failed to map segment from shared object"))
    True
    """
    for each in _with_causes(error):
        if isinstance(each, MemoryError) or getattr(each, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(each, BaseExceptionGroup) and any(map(lacks_memory, each.exceptions)):
            return True
        if isinstance(each, ImportError | OSError | RuntimeError) and any(
            words in str(each).lower() for words in _OF_MEMORY
        ):
            return True
    return False


def lacks_files(error: BaseException | None) -> OSError | None:
    """The error, or one behind it, of a process or a system that may open no more files.

    >>> lacks_files(ValueError("no answer")) is None
    True
    """
    return _of_the_system(error, errno.EMFILE, errno.ENFILE)


def lacks_room(error: BaseException | None) -> OSError | None:
    """The error, or one behind it, of a file that may not grow: the disk or a quota is full, or the process may write
    no file so large (ulimit -f).

    >>> lacks_room(OSError(errno.EFBIG, "File too large")).strerror
    'File too large'
    """
    return _of_the_system(error, errno.EFBIG, errno.ENOSPC, errno.EDQUOT)


def _of_the_system(error: BaseException | None, *numbers: int) -> OSError | None:
    """The error, or one behind it, with one of the numbers of the system."""
    of_it = (each for each in _with_causes(error) if isinstance(each, OSError) and each.errno in numbers)
    return next(of_it, None)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those behind it, the nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def counted(number: int, what: str) -> str:
    """1 and "passage" as "1 passage", 2000 as "2,000 passages"; "entry" becomes "entries"."""
    many = f"{what[:-1]}ies" if what.endswith(("ty", "ry")) else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"


def quoted(value: object) -> str:
    """The value's text as a literal on one line, cut to 60 characters.

    >>> quoted("Ada\\nLovelace"), [len(quoted("a" * length)) for length in (59, 60, 61)]
    ("'Ada Lovelace'", [61, 62, 62])
    """
    line = " ".join(str(value).split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'dense'?)" for a name near a known one, otherwise "": the middle
    of a message."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
