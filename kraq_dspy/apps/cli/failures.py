"""Says a failure as a person at a shell meets it: what happened, and what to do."""

import errno
import logging

from kraq_dspy.errors import TOO_LITTLE_MEMORY, KraqError, ModelError, lacks_files, lacks_memory, lacks_room

logger = logging.getLogger(__name__)


def in_words(error: Exception) -> KraqError | None:
    """The error as a person meets it; None for a fault of ours, which Python shows in full."""
    if lacks_memory(error):
        return _of_memory(error)
    if isinstance(error, KraqError):
        return error
    if (of_files := lacks_files(error)) is not None:
        return _of_open_files(of_files)
    of_file = lacks_room(error) or error
    if isinstance(of_file, OSError):
        return _of_a_file(of_file)
    from dspy.utils.exceptions import DSPyError  # slow to import, unless it is what was raised

    return _of_a_model(error) if isinstance(error, DSPyError) else None


def _of_a_file(error: OSError) -> KraqError | None:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    is_limited = error.errno == errno.EFBIG
    if error.filename is None and not is_full and not is_limited:
        return None
    logger.info("The error in full", exc_info=error)
    if is_full:
        where = f" at {str(error.filename)!r}" if error.filename else ""
        return KraqError(f"The disk is full{where}. Free some space, or write elsewhere, and run it again.")
    if is_limited:
        of_file = f" {str(error.filename)!r}" if error.filename else " the file"
        return KraqError(
            f"The process may not write{of_file} so large: {error.strerror}. Let it write larger files (ulimit -f "
            "unlimited), and run it again."
        )
    return KraqError(f"{str(error.filename)!r} cannot be read or written: {error.strerror}.")


def _of_open_files(error: OSError) -> KraqError | None:
    from kraq_dspy.asset.store.own_files import require_descriptors

    try:
        require_descriptors(error)
    except KraqError as in_full:
        return in_full
    return None


def _of_memory(error: Exception) -> KraqError:
    logger.info("The error in full", exc_info=error)
    first = str(error).strip().partition("\n")[0].rstrip(".")
    if TOO_LITTLE_MEMORY in str(error):
        return KraqError(str(error))
    return KraqError(f"{TOO_LITTLE_MEMORY} What failed first: {first}." if first else TOO_LITTLE_MEMORY)


def _of_a_model(error: Exception) -> ModelError:
    """Return what DSPy raises about a call, with the way out for who asked by command; its own
    advice is for programmers."""
    from dspy import ContextWindowExceededError
    from dspy.utils.exceptions import AdapterParseError, LMTimeoutError, LMTransportError

    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, AdapterParseError):
        return ModelError(f"The model gave no answer that can be read: {reason}.")
    if isinstance(error, ContextWindowExceededError):
        return ModelError(
            f"The prompt does not fit into the model's context, even with everything cut that can be: {reason}. Ask "
            "for less (-k 5, or other options of the program: kraq ask --programs). Or take a model with a larger "
            "context, or start its server with one (vLLM: --max-model-len)."
        )
    running = "that its server runs, and " if isinstance(error, LMTimeoutError | LMTransportError) else ""
    return ModelError(
        f"A call to the model failed: {reason}. Check {running}--lm, --api-base and the key (roles in kraq.toml)."
    )
