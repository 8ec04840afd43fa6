"""Take the screenshots of docs/images: `make screenshots`. The page's font is Inter (Debian: fonts-inter)."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from nominee.lab.timeline.page import html
from tests.lab.timeline.samples import sample
from tests.support.browser import chromium, open_tab

PODS: Final = {3: 22, 100: 900, 1000: 10_000}
TABS: Final = {3: "object", 100: "queues", 1000: "marks"}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_QUALITY: Final = 78


def main(folder: Path) -> None:
    """Write a picture for each size of cluster and each colour scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, TemporaryDirectory() as scratch:
        for nodes, pods in PODS.items():
            document = sample(nodes, pods, "page")
            file = Path(scratch, f"{nodes}.html")
            file.write_text(html(document))
            about = next(each["n"] for each in document["revisions"] if (each["row"] or {}).get("nominated"))
            selected = f"#object=Pod%20default%2F{about}" if TABS[nodes] == "object" else ""
            for scheme in SCHEMES:
                with open_tab(browser, file.as_uri() + selected, scheme=scheme) as shown:
                    shown.page.click(f"#tab-{TABS[nodes]}")
                    shown.settle()
                    if shown.problems:
                        raise SystemExit("\n".join(shown.problems))
                    session = shown.page.context.new_cdp_session(shown.page)
                    options = {"format": "webp", "quality": _QUALITY}
                    taken = session.send("Page.captureScreenshot", options)["data"]
                picture = folder / f"dashboard-{nodes}-{scheme}.webp"
                picture.write_bytes(base64.b64decode(taken))
                print(f"{picture}: {picture.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
