"""Builds the pages in site/: docs/*.md and README as HTML, and the API from docstrings.

Run by `make docs`.
"""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
from pathlib import Path

import markdown2

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }}
pre, code {{ font: 14px/1.4 ui-monospace, monospace }} pre {{ overflow-x: auto; padding: .7rem; background: #8881 }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }} td, th {{ border: 1px solid #8885; padding: .2rem .5rem; text-align: left }}
img {{ max-width: 100% }}
</style></head><body><nav><a href="{up}index.html">testgrad</a> · <a href="{up}api/testgrad.html">API</a></nav>
{body}</body></html>
"""


def write(source: Path, target: Path, up: str) -> None:
    """Render one page; links to .md files become links to pages."""
    text = source.read_text()
    title = html.escape(text.splitlines()[0].lstrip("# "))
    body = markdown2.markdown(text, extras=["fenced-code-blocks", "tables", "header-ids"])
    body = body.replace(".md)", ".html)").replace('.md"', '.html"')
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(PAGE.format(title=title, up=up, body=body))


def main() -> None:
    shutil.rmtree(SITE, ignore_errors=True)
    write(ROOT / "README.md", SITE / "index.html", "")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        write(ROOT / name, SITE / name.replace(".md", ".html"), "")
    for source in sorted((ROOT / "docs").rglob("*.md")):
        page = source.relative_to(ROOT).with_suffix(".html")
        write(source, SITE / page, "../" * (len(page.parts) - 1))
    for picture in sorted((ROOT / "docs").rglob("*.png")) + sorted((ROOT / "docs").rglob("*.svg")):
        shutil.copy(picture, SITE / picture.relative_to(ROOT))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pdoc",
            "-o",
            SITE / "api",
            "-d",
            "google",
            "testgrad",
            "testgrad.agents",
            "testgrad.audit",
            "testgrad.sandbox",
        ],
        check=True,
    )
    print(f"pages in {SITE}")


if __name__ == "__main__":
    main()
