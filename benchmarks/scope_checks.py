"""Takes each check of scope out of the package, one at a time in a copy of the project, and says which test notices.

    python benchmarks/scope_checks.py [--out build/scope_checks.jsonl] [--most 10] [--again] [--list]

What was measured stands in --out, and the same command goes on from there; --again tries those that were not noticed
once more. A check's tests run in a process of their own, forked from one that has loaded the libraries underneath, and
over indexes that are built once.
"""

import argparse
import importlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutations import ROOT, Copy

LOADED = (
    "dspy",
    "numpy",
    "pydantic",
    "typer",
    "rich",
    "starlette.testclient",
    "graspologic_native",
    "onnxruntime",
    "pytest",
)
"""Libraries that the tests need and that no check changes."""

LABELS = "asset/test_scope.py"
SECOND_LOOK = "scope/test_second_look.py"
PARTS = "scope/test_mutations.py::test_as_it_is_nothing_gets_out"
SERVING = "scope/test_serving.py"
HELD = "scope/test_scope_is_held.py"
VIEWS = "indexing/view/test_views.py"


@dataclass(frozen=True)
class Check:
    """A piece of a file that keeps a scope, what stands there without it, and the tests that are to notice."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def taken_out_of(self, source: str) -> str:
        """The file without the check. Raises ValueError where it does not stand there once."""
        if source.count(self.before) != 1:
            raise ValueError(f"{self.file} has {self.before!r} {source.count(self.before)} times; expected once.")
        return source.replace(self.before, self.after)


CHECKS = (
    # labels
    Check("a label in common is needed", "asset/scope.py",
          "self.is_everything or not self.labels.isdisjoint(map(comparable, labels))", "True", (LABELS,)),
    Check("a scope without labels is refused", "asset/scope.py", "if not given:", "if False:", (LABELS,)),
    Check("an empty label is refused", "asset/scope.py",
          "if not isinstance(label, str) or not label.strip():", "if False:", (LABELS,)),
    Check("what names no label is nobody's", "asset/scope.py",
          "return tuple(labels) or (NOBODY,)", "return tuple(labels)", (LABELS,)),
    Check("more labels read more", "asset/scope.py",
          "return not self.is_everything and self.labels.issubset(map(comparable, labels))", "return True", (LABELS,)),
    Check("a column that is named declares labels", "indexing/index/build.py",
          "if has_labels and not index.manifest.has_labels:", "if False:", (LABELS,)),
    Check("a document with labels declares them", "indexing/index/build.py",
          "if any(document.labels for document in documents) and not self.index.manifest.has_labels:", "if False:",
          (LABELS,)),
    Check("a document without labels among others is nobody's", "indexing/index/opening.py",
          "labelled(item, labels, is_declared=is_declared)", "labelled(item, labels)", (LABELS,)),
    Check("labels of front matter are read", "asset/corpus/formats/plain.py",
          "labels = front_matter_labels(raw, settings.acl_column, by_function=settings.by_function)", "labels = ()",
          (LABELS,)),
    Check("labels of a column of the usual name are read", "asset/corpus/formats/rows.py",
          "label_column(map(str, others), settings.acl_column, is_row=True, is_strict=not settings.by_function)",
          "settings.acl_column", (LABELS,)),
    Check("labels are no metadata of a file", "asset/corpus/formats/plain.py",
          'own = ("id", "title", "text", settings.acl_column)', 'own = ("id", "title", "text")', (LABELS,)),
    Check("labels are no metadata of a row", "asset/corpus/formats/rows.py",
          "used = {*own.texts, own.title, own.id, acl}", "used = {*own.texts, own.title, own.id}",
          (LABELS,)),
    Check("a manifest whose labels were taken out is damaged", "asset/store/manifest.py",
          'if (schema_version == LABELLED) != bool(fields.get("has_labels")):', "if False:", (LABELS,)),
    Check("labels that change make no text change", "indexing/index/build.py",
          "if not _differs_in_labels_alone(document, before[document.id])]", "]", (LABELS,)),
    # who asks
    Check("an index with labels answers nobody", "workspace/opening.py",
          "return self.scope is None and self._index.manifest.has_labels", "return False", (LABELS,)),
    Check("an export of the folder is refused", "asset/store/index.py",
          "if self._manifest.has_labels:", "if False:", (LABELS,)),
    Check("a scope of an index without labels is refused", "asset/store/index.py",
          "if not self._manifest.has_labels:", "if False:", (LABELS,)),
    Check("a scope is not widened", "workspace/workspace.py",
          'if self.scope is not None:\n            raise ScopeError("This workspace',
          'if False:\n            raise ScopeError("This workspace', (LABELS,)),
    Check("a scope is a Scope", "workspace/workspace.py", "if not isinstance(scope, Scope):", "if False:", (LABELS,)),
    Check("the newest state has the scope", "workspace/workspace.py",
          "yield lambda space: space.scoped(scope)", "yield lambda space: space.owned()", (HELD,)),
    Check("a compiled program is loaded where its examples may be read", "workspace/opening.py",
          "if not labels or not Scope(labels).reads_no_more_than(self.scope.labels):", "if False:", (LABELS,)),
    Check("a program's state is asked who may read it", "workspace/choosing.py",
          "self.require_readable(saved, Path(state))", "pass", (LABELS,)),
    Check("a compiled program says who may read its examples", "workspace/opening.py",
          "return {SCOPE: None if self.scope.is_everything else sorted(self.scope.labels)}", "return {}", (LABELS,)),
    # the view
    Check("a view has the documents whose labels allow it", "workspace/workspace.py",
          "self._index.labels().items() if scope.allows(labels)]\n        return self._part",
          "self._index.labels().items()]\n        return self._part", (LABELS,)),
    Check("a view that models write is of the scope", "workspace/workspace.py",
          "self._index.labels().items() if scope.allows(labels)]\n        from",
          "self._index.labels().items()]\n        from", (LABELS,)),
    Check("a view takes its documents alone", "indexing/view/making.py",
          "whole.ids(Document) if document_id in allowed)", "whole.ids(Document))", (LABELS,)),
    Check("a view takes the passages of its documents alone", "indexing/view/making.py",
          "whole.ids(Chunk) if chunk_id in order)", "whole.ids(Chunk))", (VIEWS,)),
    Check("a view tells no labels", "indexing/view/making.py",
          "dataclasses.replace(document, labels=())", "document", (LABELS,)),
    Check("a view lies on this machine", "indexing/view/making.py",
          "return dataclasses.replace(bare, store=StoreSettings(), communities=communities)", "return bare", (HELD,)),
    Check("a view names no models of elsewhere", "indexing/view/making.py",
          "bare = consent.without_encoder(consent.without_models(settings))", "bare = settings", (HELD,)),
    Check("a view of other documents is another one", "indexing/view/views.py", ", *sorted(known))", ")", (LABELS,)),
    Check("a view of another state is another one", "indexing/view/views.py",
          'return f"{manifest.state}-{content_id(_MADE, manifest.created_at, manifest.updated_at, *sorted(known))}"',
          'return f"0-{content_id(_MADE, *sorted(known))}"', (VIEWS, LABELS)),
    Check("an index that is not complete has no views", "indexing/view/views.py",
          "if not whole.manifest.complete:", "if False:", (HELD,)),
    Check("pairs of other passages stay behind", "indexing/prepare/qa_pairs.py",
          "batches(view.ids(Chunk), _AT_ONCE)", "batches(whole.ids(Chunk), _AT_ONCE)", (PARTS,)),
    Check("sentences of other passages stay behind", "indexing/prepare/instructed.py",
          "sorted(owners & stored.owners())", "sorted(stored.owners())", (PARTS,)),
    Check("of a question's passages, others stay behind", "indexing/prepare/instructed.py",
          "stored.part(owner_id, chunk_ids)", "stored.part(owner_id, frozenset(whole.ids(Chunk)))", (PARTS,)),
    Check("a tree's summaries of other passages stay behind", "indexing/prepare/raptor.py",
          "allowed_nodes, _ = _apart(stored.nodes, gone=set(whole.ids(Chunk)).difference(chunk_ids))",
          "allowed_nodes = stored.nodes", (PARTS,)),
    Check("K2RAG's corpus is of the view's documents", "indexing/view/making.py",
          "make_view(other, folder, document_ids,", "make_view(other, folder, other.ids(Document),",
          ("scope/test_canaries.py",)),
    # answers
    Check("an answer that is not approved is not served", "asset/store/served_answers.py",
          'if entry is None or entry.status != "approved":', "if entry is None:",
          ("asset/store/test_served_answers.py",)),
    Check("an answer that names no document is not served", "asset/store/served_answers.py",
          "if not rests_on or not rests_on <= self.readable:", "if not rests_on <= self.readable:",
          ("scope/test_canaries.py",)),
    Check("an answer that rests on others is not served", "asset/store/served_answers.py",
          "if not rests_on or not rests_on <= self.readable:", "if not rests_on:", ("scope/test_canaries.py",)),
    Check("an answer tells nothing of what was seen before it was written", "asset/store/served_answers.py",
          'return dataclasses.replace(entry, given="", evidence=(), asked=0, failure="")', "return entry",
          ("scope/test_canaries.py",)),
    Check("a view serves the answers of its documents", "workspace/opening.py",
          "readable = None if self.part is None else self.part.document_ids", "readable = None",
          ("scope/test_canaries.py",)),
    Check("a scope has no way to the catalogue itself", "asset/store/served_answers.py",
          "if self.readable is not None:", "if False:", ("scope/test_canaries.py",)),
    # the second look
    Check("passages of other documents raise", "workspace/checking.py",
          "if hit.chunk.document_id not in self._document_ids and not self._is_derived(hit.chunk):", "if False:",
          (SECOND_LOOK,)),
    Check("a report is the view's own, word for word", "workspace/checking.py",
          "chunk.text == report_text(summary) and ", "", (SECOND_LOOK,)),
    Check("a report is of documents which may be read", "workspace/checking.py",
          "report_text(summary) and self._may_be_read(community.chunk_ids)", "report_text(summary)", (SECOND_LOOK,)),
    Check("a summary is the view's own, word for word", "workspace/checking.py",
          "chunk.text == node.text and ", "", (SECOND_LOOK,)),
    Check("a summary is of documents which may be read", "workspace/checking.py",
          "node.text and self._may_be_read(self._tree.leaves[node.id])", "node.text", (SECOND_LOOK,)),
    Check("a retriever of a scope has its check", "workspace/choosing.py",
          'setattr(retrieve, "check", self.check)', "pass", (SECOND_LOOK,)),
    Check("a program of a scope has its check", "workspace/choosing.py",
          "have_looked_at(program, self.check)", "pass", (SECOND_LOOK,)),
    Check("whoever asks has a check, over retrievers of elsewhere", "workspace/asking.py",
          "hits_checked_by(self.check),", "hits_checked_by(None),", (SECOND_LOOK,)),
    Check("the passages of a prediction are looked at", "workspace/asking.py",
          '        self._look_at_hits_of(prediction)\n        prediction = Rag', '        prediction = Rag',
          (SECOND_LOOK,)),
    Check("the passages of a refusal are looked at", "workspace/asking.py",
          "        self._look_at_hits_of(prediction)\n        return prediction", "        return prediction",
          (SECOND_LOOK,)),
    Check("a retriever looks at what it found", "retrievers/hits.py",
          "span.found(looked_at(self.find(request), self.check))", "span.found(self.find(request))", (SECOND_LOOK,)),
    Check("a retriever that is a module looks at what it found", "retrievers/hits.py",
          "return looked_at(await self.find(request), self.check)", "return await self.find(request)", (SECOND_LOOK,)),
    Check("a graph's passages are looked at", "programs/graph/graph_local_search.py",
          "hits = looked_at(_passages(self.graph, question, near, fitting_links, self.k), self.check)",
          "hits = _passages(self.graph, question, near, fitting_links, self.k)", (SECOND_LOOK,)),
    Check("a graph's reports are looked at", "programs/graph/graph_local_search.py",
          "reports = looked_at(self.reports(question, self.n_entities), self.check)",
          "reports = self.reports(question, self.n_entities)", (SECOND_LOOK,)),
    # front doors
    Check("a request gets the scope of its token", "apps/serve/app.py",
          "allowed = {name: each.scoped(scope) for name, each in allowed.items()}",
          "allowed = {name: each.scoped(Scope.everything()) for name, each in allowed.items()}", (SERVING,)),
    Check("each scope has its own view at a server", "apps/serve/served.py",
          "self.space.scoped(scope), edit=edit)", "self.space.scoped(Scope.everything()), edit=edit)", (SERVING,)),
    Check("the owner's token alone reviews", "apps/serve/served.py",
          "edit = self.edit and scope.is_everything", "edit = self.edit", (SERVING,)),
    Check("labels of a token that say nothing are refused", "apps/serve/callers.py",
          'if entry.get("everything", False) not in (True, False) or ("labels" in entry and entry.get("everything")):',
          "if False:", (SERVING,)),
    Check("a command asks who asks before it reads", "apps/cli/options.py",
          "(index.require_no_labels if scope is None else index.require_labels)()", "pass",
          ("scope/test_commands.py",)),
    Check("a command that shows answers shows those of the scope", "apps/cli/catalogue.py",
          "if scope is not None and not scope.is_everything:", "if False:", ("scope/test_commands.py",)),
    Check("with a file of tokens no scope is given to all", "apps/cli/serving.py",
          "if self.tokens and self.scope() is not None:", "if False:", ("scope/test_commands.py",)),
    Check("a test set and questions are shown to the owner alone", "apps/cli/serving.py",
          "if desk is not None and scope is not None and not scope.is_everything:", "if False:",
          ("scope/test_commands.py",)),
    Check("a run says in which scope it was made", "eval/evaluation.py",
          "**(space.learned_from if space else {}),", "", ("scope/test_commands.py",)),
    Check("one compiles in the scope that was given", "optimize/compiling.py",
          "with space.scoped(self.scope) as scoped:", "with space.owned() as scoped:", (HELD,)),
    Check("rows to learn a step from are of served answers", "optimize/index_rows.py",
          "for entry in space.answers.entries():", 'for entry in space.answers.catalogue.entries("approved"):',
          ("scope/test_canaries.py",)),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "scope_checks.jsonl")
    parser.add_argument("--most", type=int, default=None, help="measure so many now, and leave the rest to another run")
    parser.add_argument("--again", action="store_true", help="try once more what was not noticed")
    parser.add_argument("--list", action="store_true", help="print the checks and run nothing")
    arguments = parser.parse_args()
    if arguments.list:
        for check in CHECKS:
            print(f"{check.what}: {check.file}")
        return

    noticed_by = _measured_before(arguments.out, with_unnoticed=not arguments.again)
    unmeasured = [check for check in CHECKS if check.what not in noticed_by][: arguments.most]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for name in LOADED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="kraq-checks-") as folder, arguments.out.open("a") as out:
        os.environ["KRAQ_SCOPE_INDEXES"] = str(Path(folder) / "indexes")
        copy = Copy(Path(folder))
        for check in unmeasured:
            noticed_by[check.what] = failure = _without(check, copy)
            out.write(json.dumps({"what": check.what, "file": check.file, "noticed_by": failure}) + "\n")
            out.flush()
            print(f"{failure or 'NOT NOTICED'}: {check.what}", flush=True)

    measured = [check for check in CHECKS if check.what in noticed_by]
    unnoticed = [check.what for check in measured if not noticed_by[check.what]]
    print(f"{len(measured) - len(unnoticed)} of {len(measured)} noticed, of {len(CHECKS)} checks")
    for what in unnoticed:
        print(f"not noticed: {what}")


def _measured_before(out: Path, *, with_unnoticed: bool) -> dict[str, str]:
    """What noticed each check, by `what`; of several tries the last one."""
    lines = out.read_text().splitlines() if out.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["what"]: row["noticed_by"] for row in rows if row["noticed_by"] or with_unnoticed}


def _without(check: Check, copy: Copy) -> str:
    """The first test that fails without the check; "" where none does. That test must pass with it."""
    source = copy.read(check.file)
    copy.write(check.file, check.taken_out_of(source.decode()).encode())
    try:
        failure = first_failure(copy, check.tests)
    finally:
        copy.write(check.file, source)
    if failure and first_failure(copy, [failure.removeprefix("tests/")]):
        raise SystemExit(f"With every check in its place, {failure} fails too.")
    return failure


def first_failure(copy: Copy, tests: Sequence[str]) -> str:
    """The first of the tests that fails, or "" where all pass."""
    outcome = copy.folder / "first_failure"
    outcome.write_text("")

    def run() -> None:
        os.chdir(copy.folder)
        import pytest

        class Noted:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed and not outcome.read_text():
                    outcome.write_text(report.nodeid)

            def pytest_collectreport(self, report: pytest.CollectReport) -> None:
                if report.failed and not outcome.read_text():
                    outcome.write_text(f"{report.nodeid} is not collected")

        words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "--no-header"]
        pytest.main([*words, *(f"tests/{test}" for test in tests)], plugins=[Noted()])

    _in_a_fork(run, copy.folder)
    return outcome.read_text()


def _in_a_fork(work: Callable[[], None], folder: Path) -> None:
    """Do the work in a process of its own, whose imports find the project in `folder`."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return

    try:
        sys.path[:0] = [str(folder), str(folder / "benchmarks")]
        os.environ["PYTHONPATH"] = str(folder)
        quiet = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        work()
    except BaseException:  # noqa: BLE001 (a fork must not come back into its parent's work)
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
