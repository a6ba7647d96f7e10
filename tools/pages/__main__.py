"""`make pages`: runs the commands that pages of docs/ show, and fills in what they print."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.pages.transcripts import filled, output_of, write_files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    DOCS / "misconceptions.md",
    DOCS / "hazards-told.md",
    DOCS / "explore.md",
)


def main(chosen: list[str]) -> int:
    """All pages, or those named."""
    for page in PAGES:
        if not chosen or page.stem in chosen:
            text = page.read_text(encoding="utf-8")
            with TemporaryDirectory(prefix="isr-pages-") as directory:
                write_files(text, Path(directory))
                page.write_text(filled(text, partial(output_of, directory=Path(directory))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
