"""Keeps arrays in one file, one after the other as numpy writes them, and maps them into memory: to open them takes no
time, and processes that read them share their memory."""

import math
import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.files import replaced

_ALIGN = 64  # bytes


def write_arrays(path: Path, arrays: Iterable[tuple[str, tuple[int, ...], Iterable[NDArray[Any]]]]) -> None:
    """All of them or nothing takes the place of `path`; of each its type, its shape, and its rows, some at a time.

    Raises OSError.
    """
    with replaced(path) as draft, draft.open("wb") as file:
        for kind, shape, blocks in arrays:
            file.write(bytes(-file.tell() % _ALIGN))
            header = {"descr": kind, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(np.ascontiguousarray(block, kind).data)


def map_arrays(path: Path, kinds: Sequence[str]) -> list[Any]:
    """The arrays of a file, which are of these types ("S" is bytes of any length). Raises OSError, and ValueError for a
    file that is not what was written."""
    arrays = []
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for kind in kinds:
            file.seek(-file.tell() % _ALIGN, 1)
            try:
                np.lib.format.read_magic(file)
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
            except (TypeError, SyntaxError, RecursionError, MemoryError) as error:
                raise ValueError(f"a header is not what was written ({error})") from error
            count, start = math.prod(shape), file.tell()
            if is_fortran or min(shape) < 0 or kind not in (dtype.str, dtype.kind):
                raise ValueError(f"it has an array of the type {dtype} and the shape {shape}")
            if start + count * dtype.itemsize > len(mapped):
                raise ValueError("it is cut off")
            arrays.append(np.frombuffer(mapped, dtype, count, start).reshape(shape))
            file.seek(start + count * dtype.itemsize)

        if file.tell() != len(mapped):
            raise ValueError("it is longer than it was")
    return arrays
