"""Takes the pictures of the explorer: its first page for docs/guide/serve.md, an answer for README.md.

kraq demo
kraq serve demo.kraq --port 8377
python scripts/page_picture.py http://localhost:8377/ docs/images/explore.png
python scripts/page_picture.py --answer combined "Which hotels and towers stand around Columbus Circle?" \\
    http://localhost:8377/ docs/images/what-found-what.png
"""

import argparse
import shutil
from urllib.parse import urlencode

from playwright.sync_api import FloatRect, ViewportSize, sync_playwright

SIZE: ViewportSize = {"width": 1200, "height": 912}
MARGIN = 24  # pixels around an answer
ANSWER_HEIGHT = 748  # what found it, and the first two passages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("out")
    parser.add_argument("--answer", nargs=2, metavar=("PROGRAM", "QUESTION"), help="of what a program answers")
    options = parser.parse_args()

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        if options.answer:
            program, question = options.answer
            page.goto(f"{options.address}#ask?{urlencode({'q': question, 'p': program, 'go': 1})}", timeout=120_000)
            page.get_by_text("What found what").wait_for(timeout=120_000)
            corner = page.locator(".answers").bounding_box()
            assert corner is not None
            left, top, width = corner["x"] - MARGIN, corner["y"] - MARGIN, corner["width"] + 2 * MARGIN
            part = FloatRect(x=left, y=top, width=width, height=ANSWER_HEIGHT)
            page.screenshot(path=options.out, full_page=True, clip=part)
        else:
            page.goto(options.address, timeout=120_000)
            page.locator(".map > *").first.wait_for(timeout=60_000)
            page.screenshot(path=options.out)
        browser.close()


if __name__ == "__main__":
    main()
