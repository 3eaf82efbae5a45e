"""Loads documents from files. An unusable file or row becomes a `Failure` with the reason;
loading continues with the rest."""

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from kraq_dspy.asset.corpus.boilerplate import Linked, RepeatedLines, cleaned
from kraq_dspy.asset.corpus.files import CorpusFile, find_files, unreadable
from kraq_dspy.asset.corpus.formats.readers import READERS, find_reader
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.values import holds_rows
from kraq_dspy.asset.corpus.formats.zipped import DAMAGED, beginning_of
from kraq_dspy.asset.corpus.labels_file import LabelsFile
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.asset.label_names import MENTIONED, mentions_labels
from kraq_dspy.asset.scope import labelled, unlabelled
from kraq_dspy.errors import CorpusError, MissingExtraError, counted
from kraq_dspy.records import Document, Failure, content_id

MAX_BYTES, MAX_UNPACKED = 50_000_000, 200
FIRST_ROWS = 100  # of a file, by which it is known whether it has a column
SAME_TEXT = "The text is the same as that of the earlier document"
SAME_ID = "belongs to an earlier document"
NO_PAGES = (
    ".pdf",
    ".pptx",
    ".xlsx",
    ".xlsm",
    ".xlsb",
    ".xls",
    ".ods",
    ".rtf",
)  # hold no web pages, and take long to read
FAILURES_NAMED = 1000  # of one file; more are counted in one further failure

logger = logging.getLogger(__name__)


def load_documents(
    path: str | Path,
    *,
    id_column: str = "id",
    title_column: str = "title",
    text_column: str = "text",
    acl_column: str = "",
    encoding: str = "",
    max_bytes: int = MAX_BYTES,
    max_unpacked: int = MAX_UNPACKED,
    boilerplate: str = "drop",
    known_lines: Iterable[str] = (),
    labels: Callable[[Document], Iterable[str]] | None = None,
    require_labels: bool = False,
) -> Iterator[Document | Failure]:
    """The documents of a file, or of a folder and those in it, as they are read and in the same order every time.

    Files with a document in each row (jsonl, jsonl.gz, ndjson, json, csv, tsv, parquet) have a text
    column. They may have an id, a title, and labels of who may read them (`acl_column`); every
    other column becomes metadata. Of the others (txt, md, html, pdf) each file is a document.
    Without an id column, a document's id is its file's relative path, and a row's is path#content,
    with the hash of its title and text. So a row keeps its id if others come before it. A row
    without a title has none. Text, titles and names are `normalised`.

    `encoding` is that of files which are not UTF-8 and have no byte-order mark. `max_bytes` limits a file that is one
    document, a line of jsonl, and a text; `max_unpacked` how many times its size a compressed file may hold. Of
    documents with the same text and the same labels, or with the same id, the first is kept. `labels` is a function
    that says who may read a document, in place of what its file says. A document without labels fails if they are
    required (`require_labels`).

    Web pages, in HTML or Markdown, are without `boilerplate` unless it is to "keep": see `cleaned_document`. What
    repeats over them is found in a first reading of all files but PDF, slides and sheets; `known_lines` were found
    before.

    Failures have the stage "load" and name the file, or file#row, where row is the line number in jsonl and the row
    number elsewhere, from 1. Raises CorpusError at once when the path does not exist, and at the end when there was no
    usable document. Raises ValueError when `max_bytes` is below 1.
    """
    root = Path(path)
    if max_bytes < 1:
        raise ValueError(f"max_bytes is {max_bytes}; it must be 1 or more.")

    try:
        root.lstat()
    except (OSError, ValueError) as error:
        raise CorpusError(f"There is no corpus at {str(root)!r}. Name a file or a folder.") from error
    settings = ReadSettings(
        id_column, title_column, text_column, acl_column, max_bytes, max_unpacked, encoding, labels is not None
    )
    repeated = RepeatedLines(known_lines) if boilerplate == "drop" else None
    return _load(root, settings, repeated, _DuplicateFilter(labels, require_labels=require_labels))


def is_repeated(failure: Failure) -> bool:
    """Whether what failed was read, and left out since an earlier document has its text or its id."""
    return has_same_text(failure) or SAME_ID in failure.reason


def has_same_text(failure: Failure) -> bool:
    """Whether a document was left out since an earlier one has its text: nothing of it is missing."""
    return failure.reason.startswith(SAME_TEXT)


def is_about_labels(failure: Failure) -> bool:
    """Whether what failed was left out since kraq does not understand who may read it."""
    return failure.stage == "load" and "who may read" in failure.reason


def cleaned_document(
    document: Document, repeated: RepeatedLines, linked: Mapping[int, Linked] | None = None
) -> Document:
    """The document without the boilerplate of a web page, which becomes `left_out`."""
    result = cleaned(document.text, repeated, document.headings, linked or {})
    if result.text == document.text:
        return document
    left_out = document.left_out + result.left_out
    return dataclasses.replace(document, text=result.text, headings=result.headings, left_out=left_out)


def _count_lines(root: Path, settings: ReadSettings, repeated: RepeatedLines) -> None:
    for file in find_files(root):
        if isinstance(file, CorpusFile) and not file.source.lower().endswith(NO_PAGES):
            for row in _read(file, settings):
                if isinstance(row, Row):
                    repeated.add(row.text, row.linked)


def _load(
    root: Path,
    settings: ReadSettings,
    repeated: RepeatedLines | None,
    earlier: "_DuplicateFilter",
) -> Iterator[Document | Failure]:
    of_labels = earlier.labels.path if isinstance(earlier.labels, LabelsFile) else None
    if repeated is not None:
        _count_lines(root, settings, repeated)

    first_failure: Failure | None = None
    n_failures = 0
    for entry in find_files(root):
        if of_labels is not None and isinstance(entry, CorpusFile) and entry.path.resolve() == of_labels:
            continue
        for item in [entry] if isinstance(entry, Failure) else _load_file(entry, settings, repeated, earlier):
            if isinstance(item, Failure):
                first_failure = first_failure or item
                n_failures += 1
            yield item

    if earlier.ids:
        return
    if first_failure is None:
        raise CorpusError(f"{str(root)!r} holds no files. Put files of these kinds in it: {_extensions()}.")

    raise CorpusError(
        f"{str(root)!r} holds no usable text; {n_failures} failed, the first {first_failure.item_id!r}: "
        f"{first_failure.reason}"
    )


def _load_file(
    file: CorpusFile, settings: ReadSettings, repeated: RepeatedLines | None, earlier: "_DuplicateFilter"
) -> Iterator[Document | Failure]:
    is_declared = bool(settings.acl_column or settings.by_function)
    is_mentioned = not is_declared and _mentions_labels(file)
    n_failures = 0
    last = ""
    for row in _with_named_columns(_read(file, settings), settings):
        outcome: Document | BadRow
        if isinstance(row, BadRow):
            outcome = row
        else:
            outcome = _document(row, file, repeated, earlier, is_declared=is_declared, is_mentioned=is_mentioned)
        if isinstance(outcome, Document):
            yield outcome
            continue
        n_failures += 1
        last = outcome.reason
        if n_failures <= FAILURES_NAMED:
            item_id = f"{file.source}#{outcome.key}" if outcome.key else file.source
            logger.info("%s: %s", item_id, outcome.reason)
            yield Failure("load", item_id, outcome.reason)

    if n_failures > FAILURES_NAMED:
        yield Failure(
            "load", file.source, f"{counted(n_failures - FAILURES_NAMED, 'more row')} failed, the last: {last}"
        )


def _with_named_columns(rows: Iterator[Row | BadRow], settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The rows, or what is wrong with the file if none of the first has a column that somebody has named: it would
    be read without titles, or with ids that are not its own."""
    lacking = frozenset(settings.named)
    first: list[Row | BadRow] = []
    columns: dict[str, None] = {settings.text_column: None}
    while lacking and len(first) < FIRST_ROWS and (row := next(rows, None)) is not None:
        first.append(row)
        if isinstance(row, Row):
            lacking &= row.lacks
            columns |= dict.fromkeys(map(str, row.metadata))

    if lacking and any(isinstance(row, Row) for row in first):
        yield BadRow(settings.missing_named(min(lacking), columns))
        return
    yield from first
    yield from rows


def _read(file: CorpusFile, settings: ReadSettings) -> Iterator[Row | BadRow]:
    try:
        yield from find_reader(file.source)(file.path, settings)
    except OSError as error:
        yield BadRow(unreadable(error))
    except MissingExtraError as error:
        yield BadRow(str(error))


def _document(
    row: Row,
    file: CorpusFile,
    repeated: RepeatedLines | None,
    earlier: "_DuplicateFilter",
    *,
    is_declared: bool,
    is_mentioned: bool,
) -> Document | BadRow:
    if is_blank(row.text):
        return BadRow("The text is empty.", row.key)

    title = normalised(row.title).strip()
    unnamed = f"{file.source}#{content_id('row', title, row.text)[:12]}" if row.key else file.source
    document = Document(
        id=row.id if row.id is not None else unnamed,
        title=title,
        text=row.text,
        source=file.source,
        metadata=row.metadata,
        headings=row.headings,
        labels=row.labels,
        left_out=row.left_out,
    )
    if repeated is not None:
        document = cleaned_document(document, repeated, row.linked)
    document = labelled(document, earlier.labels, is_declared=is_declared)
    if earlier.require_labels and (reason := unlabelled(document)):
        return BadRow(reason, row.key)
    in_metadata = (mentions_labels(value) for value in document.metadata.values() if isinstance(value, str))
    if not document.labels and (is_mentioned or any(in_metadata)):
        document = dataclasses.replace(document, left_out=(*document.left_out, MENTIONED))
    if row.id is None and document.id in earlier.ids:  # the same text, for others
        own = content_id("labels", *document.labels)[:12]
        document = dataclasses.replace(document, id=f"{document.id}-{own}")
    problem = earlier.problem_with(document)
    return BadRow(problem, row.key) if problem else document


def _mentions_labels(file: CorpusFile) -> bool:
    """Whether a file that is no table has the word "acl" where it may declare labels."""
    try:
        return not holds_rows(file.source) and mentions_labels(beginning_of(file.path))
    except (OSError, *DAMAGED):
        return False  # its reader says what is wrong with the file


class _DuplicateFilter:
    """Remembers ids and the hashes of texts, never the texts: about 300 bytes for each document. A text that others may
    read, by its labels, repeats nothing."""

    def __init__(self, labels: Callable[[Document], Iterable[str]] | None, *, require_labels: bool) -> None:
        self.labels, self.require_labels = labels, require_labels
        self.ids: set[str] = set()
        self.first_with: dict[bytes, str] = {}

    def problem_with(self, document: Document) -> str:
        """Why the document repeats an earlier one; "" when it does not, and then it is remembered."""
        text = hashlib.blake2b(document.text.strip().encode("utf-8"), digest_size=16).digest()
        digest = text + content_id(*document.labels).encode() if document.labels else text
        first = self.first_with.get(digest)
        if first is not None:
            return f"{SAME_TEXT} {first!r}. It is left out."
        if document.id in self.ids:
            return (
                f"The id {document.id!r} {SAME_ID}, whose text or whose labels are others. Give each document an id of "
                "its own; a document that several groups may read has all their labels in one row."
            )
        self.ids.add(document.id)
        self.first_with[digest] = document.id
        return ""


def _extensions() -> str:
    return ", ".join(extension.removeprefix(".") for extension in READERS)


def bundled_example() -> Path:
    """Return the folder with `corpus.jsonl`, 600 passages of Wikipedia, and `questions.jsonl`, 60 questions about
    these
    passages.

    >>> next(load_documents(bundled_example() / "corpus.jsonl")).title
    'Ed Wood (film)'
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parent / "examples"):  # in a wheel, in a checkout
        if (folder / "hotpotqa-mini").is_dir():
            return folder / "hotpotqa-mini"
    raise CorpusError("The bundled example is missing; reinstall kraq-dspy.")
