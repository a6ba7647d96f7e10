"""`make pages`: runs the commands that pages show, fills in what they print, draws the pictures."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.pages.pictures import draw_all
from tools.pages.transcripts import filled, output_of, write_files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    DOCS / "learn" / "tutorial.md",
    DOCS / "misconceptions.md",
    DOCS / "hazards-told.md",
    DOCS / "explore.md",
)


def main(chosen: list[str]) -> int:
    """All pages, or those named; `pictures` names the pictures."""
    if not chosen or "pictures" in chosen:
        draw_all(DOCS / "pictures")
    for page in PAGES:
        if not chosen or page.stem in chosen:
            text = page.read_text(encoding="utf-8")
            with TemporaryDirectory(prefix="isr-pages-") as directory:
                write_files(text, Path(directory))
                page.write_text(filled(text, partial(output_of, directory=Path(directory))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
