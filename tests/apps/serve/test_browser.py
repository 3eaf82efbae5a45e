"""Opens every view of the page in a real Chromium: `make test-browser`. Skipped if none is installed."""

import dataclasses
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kraq_dspy import Index
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.apps.serve.server import Server, address_of, bound
from kraq_dspy.apps.serve.testset_desk import TestsetDesk
from kraq_dspy.eval import Testset
from kraq_dspy.records import Community
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.workspace.topics import topics
from tests.apps.serve.conftest import EMBEDDER, MARKUP, open_all
from tests.apps.serve.test_labels import desk_in
from tests.apps.serve.test_testsets import write_testset
from tests.conftest import KeywordEmbedder
from tests.orchids import FOREIGN, index_of_orchids

pytestmark = pytest.mark.browser
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOKEN = "correct-horse-battery"
WAIT_MS = 60_000


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra dev)")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs a Chromium: apt-get install chromium")
    with (
        api.sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])) as started,
    ):
        yield started


@pytest.fixture
def serve(poets: Path) -> Iterator[Callable[..., str]]:
    """Serves the index on a free port until the test ends, and says where."""
    with ExitStack() as stack:

        def start(
            folder: Path = poets,
            *,
            edit: bool = False,
            desk: TestsetDesk | None = None,
            embedder: KeywordEmbedder | None = EMBEDDER,
            **settings: Any,
        ) -> str:
            indexes = stack.enter_context(open_all(folder, edit=edit, desk=desk, embedder=embedder))
            return stack.enter_context(Running(indexes, ServeSettings(port=0, **settings)))

        yield start


class Running:
    """The server in a thread; its address in the block."""

    def __init__(self, indexes: dict[str, ServedIndex], settings: ServeSettings) -> None:
        self.listening = bound(settings.host, settings.port)
        self.started = threading.Event()
        self.server = Server(make_app(indexes, settings), self.started.set)
        self.thread = threading.Thread(target=self.server.run_on, args=[self.listening], daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        assert self.started.wait(60)
        return address_of(self.listening)

    def __exit__(self, *exc_info: object) -> None:
        self.server.should_exit = True
        self.thread.join(60)
        self.listening.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Callable[..., "Page"]]:
    """Opens an address. At the end: no error was logged, and nothing was asked for elsewhere."""
    problems: list[str] = []
    with ExitStack() as stack:

        def opened(address: str, *, errors: bool = False, **how: Any) -> "Page":
            context = stack.enter_context(closing(browser.new_context(**how)))
            context.set_default_timeout(WAIT_MS)
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(f"error: {error}"))
            if not errors:
                page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
            home = "file:" if address.startswith("file:") else address.split("/#")[0].split("/page/")[0]
            page.on(
                "request",
                lambda request: None if request.url.startswith((home, "data:")) else problems.append(request.url),
            )
            page.goto(address)
            page.wait_for_selector("h1")
            return page

        yield opened
    assert problems == []


def until(page: "Page", condition: str) -> None:
    """Wait for a condition in JavaScript. Playwright's own way needs `eval`, which the page forbids."""
    for _ in range(WAIT_MS // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"It never held: {condition}")


def go(page: "Page", address: str) -> None:
    """Follow an address within the page, and wait for its view."""
    page.evaluate(
        "hash => { window.before = document.querySelector('main').firstChild; location.hash = hash; }", address
    )
    until(
        page,
        "document.querySelector('main').firstChild !== window.before && !document.querySelector('main[aria-busy]')",
    )


def test_the_first_view_leads_from_a_broad_question_to_a_document(
    serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve())
    assert "4 documents" in page.inner_text("h1")
    page.click(".tree a.question >> nth=0")
    page.wait_for_selector("text=Neighbourhood")
    assert "#community/" in page.url
    page.click(".passage header a >> nth=0")
    page.wait_for_selector(".document")
    assert "#document/" in page.url
    page.go_back()
    page.wait_for_selector("text=Neighbourhood")


def test_a_broad_community_that_a_template_asked_about_is_shown_by_its_topic(
    serve: Callable[..., str], open_page: Callable[..., Any], copy: Path
) -> None:
    with Index.open(copy, write=True) as index:
        index.add([dataclasses.replace(each, child_ids=("inside",)) for each in index.all(Community)])
        index.add([dataclasses.replace(each, model=EMBEDDED) for each in index.questions()])  # the parse asked
        topic = topics(index, index.questions(level=0)[:1]).popitem()[1]
    page = open_page(serve(copy))
    assert page.inner_text(".tree a.question >> nth=0").startswith("About ")
    assert f"About {topic}" in page.inner_text("body")
    page.click(".tree a.question >> nth=0")
    page.wait_for_selector("text=Neighbourhood")
    assert page.inner_text("h1").startswith("About ")
    assert page.inner_text("a.action").startswith("Ask: ")


def test_the_tree_opens_and_the_keys_walk_it(serve: Callable[..., str], open_page: Callable[..., Any]) -> None:
    page = open_page(serve())
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('a.question')")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Neighbourhood")
    page.keyboard.press("?")
    assert page.is_visible("dialog kbd")
    page.keyboard.press("Escape")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_question_to_begin_with_is_asked_and_leads_to_a_next_one(
    serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve())
    starter = page.inner_text(".starters a >> nth=0")
    page.click(".starters a >> nth=0")
    page.wait_for_selector(".next a", timeout=WAIT_MS)
    assert page.input_value("textarea") == starter
    following = page.inner_text(".next a >> nth=0")
    assert following != starter
    page.click(".next a >> nth=0")
    page.wait_for_function("(text) => document.querySelector('textarea').value === text", arg=following)
    page.wait_for_selector(".passages article", timeout=WAIT_MS)


def test_search_answers_while_one_types_and_the_arrows_choose(
    serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve())
    page.keyboard.press("/")
    page.keyboard.type("lord by")
    page.wait_for_selector("#found [role=option] >> text=Lord Byron")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#found [role=option] >> nth=0", "aria-selected") == "true"
    page.keyboard.press("Enter")
    until(page, "location.hash.length > 1")
    assert page.is_hidden("#found")


def test_two_programs_answer_side_by_side_with_what_found_what(
    serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{serve()}/#ask?q=Who%20wrote%20Don%20Juan%3F&p=combined&vs=traditional")
    page.click("button.primary")
    until(page, "document.querySelectorAll('.times').length === 2")
    assert [each.inner_text() for each in page.query_selector_all(".column h2")] == ["combined", "traditional"]
    assert all("Byron" in each.inner_text() for each in page.query_selector_all(".answer"))
    assert page.query_selector_all(".both")
    assert "your question" in page.inner_text(".queries >> nth=0")


def test_a_graph_is_drawn_and_a_click_on_a_node_walks_to_it(
    serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve())
    page.click(".tree a.question >> nth=0")
    page.wait_for_selector("text=/\\d+ nodes/")
    until(
        page,
        """() => { const canvas = document.querySelector('canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return data.some((value) => value); }""",
    )
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.wait_for_selector("text=/\\d+ nodes/")
    box = page.query_selector("canvas").bounding_box()
    for step in range(400):  # until the pointer is over a node
        x, y = box["x"] + 12 + 37 * step % (box["width"] - 24), box["y"] + 12 + 11 * step % (box["height"] - 60)
        page.mouse.move(x, y)
        if page.evaluate("document.querySelector('canvas').style.cursor") == "pointer":
            page.mouse.click(x, y)
            break
    until(page, "location.hash.startsWith('#entity/')")


def test_markup_in_an_index_is_shown_and_never_run(serve: Callable[..., str], open_page: Callable[..., Any]) -> None:
    address = serve()
    page = open_page(address)
    titles = []
    places = ["#", "#?level=0", "#search?q=juan", "#document/juan"]
    places += page.evaluate(
        """async () => { const data = async (path) => (await fetch('api/' + path)).json();
        const question = (await data('questions?level=0')).items.find((each) => each.text.includes('<img'));
        const entity = (await data('search?q=img')).entities[0];
        return [`#community/${question.community_id}`, `#entity/${entity.id}`]; }"""
    )
    for place in places:
        page.goto(f"{address}/{place}")
        page.reload()
        page.wait_for_selector("h1")
        titles.append(MARKUP in page.inner_text("main"))
        assert page.query_selector_all("main img") == []
        assert "owned" not in page.title().replace(MARKUP, "")
    assert titles.count(True) >= 4
    page.fill("#search", "img")
    page.wait_for_selector("#found [role=option] >> text=onerror")
    assert page.query_selector_all("#found img") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_fits_its_window_in_both_schemes(
    serve: Callable[..., str], open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    address = serve(edit=False)
    page = open_page(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    community = page.get_attribute(".tree a.question >> nth=0", "href")
    for place in ("#", community, "#ask", "#search?q=byron", "#document/byron", "#review"):
        page.goto(f"{address}/{place}")
        page.reload()
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        ink, back = page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        light = [sum(map(int, colour[4:-1].split(","))) for colour in (ink, back)]
        assert (light[0] < light[1]) == (scheme == "light")


def test_an_entry_is_approved_edited_and_rejected_with_edit_alone(
    serve: Callable[..., str], open_page: Callable[..., Any], copy: Path
) -> None:
    page = open_page(f"{serve(copy, edit=True)}/#review", errors=True)  # a refusal is logged
    page.click(".entries a >> text=Who wrote Don Juan?")
    page.wait_for_selector(".entry")
    page.click("button >> text=/^Approve$/")
    page.wait_for_selector("nav .badge >> text=1")
    page.wait_for_selector(".entry h2 >> text=Who met Ada Lovelace?")
    page.fill(".entry textarea", "Charles Babbage.")
    page.fill(".entry input", "nowhere")
    page.click("button >> text=Save and approve")
    page.wait_for_selector(".entry .error >> text=no document")
    page.fill(".entry input", "notes/babbage.md")
    page.click("button >> text=Save and approve")
    page.wait_for_selector("text=Nothing here")
    page.click(".tabs a >> text=Approved")
    until(page, "document.querySelectorAll('.entries li').length === 3")
    page.click(".entries a >> text=Where did Byron live?")
    page.wait_for_selector(".entry")
    page.click("button >> text=Reject")
    until(page, "document.querySelectorAll('.entries li').length === 0")


def test_without_edit_the_review_has_no_buttons(serve: Callable[..., str], open_page: Callable[..., Any]) -> None:
    page = open_page(f"{serve()}/#review/1")
    page.wait_for_selector(".entry")
    assert page.query_selector_all(".entry button") == []
    assert "read-only" in page.inner_text(".lead")


def test_the_page_asks_for_the_token_and_again_after_a_wrong_one(serve: Callable[..., str], browser: "Browser") -> None:
    address = serve(token=TOKEN)
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(address)
        for token in ("wrong-wrong", TOKEN):
            page.fill("dialog input", token)
            page.click("dialog button")
        page.wait_for_selector("h1")
        assert "4 documents" in page.inner_text("h1")


def test_rows_of_a_test_set_are_decided_by_keys_and_stay_decided(
    serve: Callable[..., str], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    file = write_testset(tmp_path / "test.jsonl")
    page = open_page(f"{serve(edit=True, desk=TestsetDesk.of(None, file))}/#testset")
    page.wait_for_selector("[aria-label=Question]")
    assert page.input_value("[aria-label=Question]") == "Who wrote Don Juan?"
    page.keyboard.press("y")
    until(page, "document.querySelector('[aria-label=Question]').value === 'Where did Byron live?'")
    page.keyboard.press("e")
    assert not page.is_visible("button >> text=Approve y")  # it would leave out what is written
    page.fill("[aria-label=Question]", "Where did Lord Byron live")
    page.keyboard.press("y")  # types in the field, and decides nothing
    assert page.input_value("[aria-label=Question]") == "Where did Lord Byron livey"
    page.fill("[aria-label=Question]", "Where did Lord Byron live?")
    page.keyboard.press("Control+Enter")
    until(page, "document.querySelector('[aria-label=Question]').value === 'Who was Ada?'")
    page.keyboard.press("n")
    page.wait_for_selector("text=All is decided")
    page.wait_for_selector("text=0 rows to decide, 2 approved, 1 rejected")
    rows = {row.id: row for row in Testset.load(file)}
    assert [rows[id].status for id in ("t1", "t2", "t3")] == ["approved", "approved", "rejected"]
    assert rows["t2"].question == "Where did Lord Byron live?"

    page.reload()
    page.click(".tabs a >> text=Rejected")
    until(page, "document.querySelector('[aria-label=Question]')?.value === 'Who was Ada?'")
    page.keyboard.press("u")
    page.wait_for_selector("nav .badge >> text=1")
    assert {row.status for row in Testset.load(file)} == {"approved", "new"}


def test_human_questions_are_labeled_by_keys_and_a_reload_goes_on(
    serve: Callable[..., str], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "few.jsonl"
    page = open_page(f"{serve(desk=desk_in(tmp_path))}/#label")
    page.wait_for_selector(".entry .passage")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No passage is marked")
    page.keyboard.press("1")
    page.wait_for_selector(".passage.marked")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=2 of 3")
    page.keyboard.press("n")
    page.wait_for_selector("text=3 of 3")
    page.keyboard.press("u")
    page.wait_for_selector("text=2 of 3")
    assert [row.is_answerable for row in Testset.load(file)] == [True]

    page.reload()
    page.wait_for_selector("text=2 of 3")
    page.keyboard.press("n")
    page.wait_for_selector("text=3 of 3")
    page.click("button >> text=Nothing answers it")
    page.wait_for_selector("h1 >> text=All is labeled")
    assert "3 questions, 2 of them unanswerable" in page.inner_text(".lead")
    assert len(Testset.load(file)) == 3


def test_coverage_shows_what_is_never_touched_and_offers_rows(
    serve: Callable[..., str], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    asked = tmp_path / "mine.jsonl"
    asked.write_text('{"question": "Who named Cattleya?"}\n')
    file = write_testset(tmp_path / "test.jsonl")
    page = open_page(f"{serve(path, edit=True, desk=TestsetDesk.of(asked, file), embedder=None)}/#coverage")
    page.wait_for_selector("h1 >> text=that your questions never touch")
    names = page.locator(".covered .question").all_inner_texts()
    assert names
    assert not any("Cattleya" in name for name in names)
    page.click("button >> text=Offer questions >> nth=0")
    page.click("button >> text=Add to the test set >> nth=0")
    page.wait_for_selector("button >> text=/^Added$/")
    page.wait_for_selector("nav .badge >> text=3")
    assert len(Testset.load(file)) == 4


def test_a_refusal_shows_offers_and_asks_all_the_same(
    serve: Callable[..., str], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    page = open_page(f"{serve(path, embedder=None)}/#ask")
    page.fill("textarea", FOREIGN[0])
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The documents do not answer this question.")
    assert page.locator(".next a").count() == 3
    page.click("button >> text=Ask all the same")
    until(page, "document.querySelector('.times') && !document.querySelector('.column.refused')")
