"""Takes the picture of the explorer's page for docs/guide/serve.md, of an index that is served.

kraq demo
kraq explore demo.kraq --no-browser --port 8377
python scripts/page_picture.py http://localhost:8377/ docs/images/explore.png
"""

import shutil
import sys

from playwright.sync_api import sync_playwright

SIZE = {"width": 1200, "height": 912}


def main() -> None:
    address, out = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        page.goto(address, timeout=120_000)
        page.locator(".map > *").first.wait_for(timeout=60_000)
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    main()
