"""Pages in notebooks."""

from __future__ import annotations

NOTEBOOK_PAGE = 2 << 20  # bytes of a report's page, each time that a notebook shows it: the least that there is
_MOST = 16 << 20  # bytes of a page: beyond this a notebook shows words


def frame(page: str, height: int) -> str:
    """A page in a frame of its own. It runs as from nowhere: it cannot reach the notebook, nor the network."""
    text = page.replace("&", "&amp;").replace('"', "&quot;")
    return (f'<iframe sandbox="allow-scripts allow-downloads allow-popups" srcdoc="{text}" width="100%" '
            f'height="{height}" style="width:100%;height:{height}px;border:1px solid rgba(128,128,128,.4);'
            'border-radius:4px;box-sizing:border-box;resize:vertical;display:block" title="snapana"></iframe>')


def fits(page: str) -> bool:
    return len(page) <= _MOST
