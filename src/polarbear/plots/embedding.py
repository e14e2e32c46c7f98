"""Figures that are saved with TrueType fonts, because journals reject Type 3 fonts.

This module imports matplotlib, so it is imported only when something is drawn.
"""

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

TEXT_AS_TEXT: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""Matplotlib settings: TrueType fonts in PDF and PostScript, text as text in SVG."""


class PaperFigure(Figure):
    """A figure that is saved with TrueType fonts whatever matplotlib's settings are."""

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Save the figure, as :meth:`matplotlib.figure.Figure.savefig` does."""
        with rc_context(TEXT_AS_TEXT):
            super().savefig(fname, **kwargs)


def save_with_text(figure: Figure, path: Any, **options: Any) -> None:
    """Save any figure with TrueType fonts, and leave matplotlib's settings as they are."""
    with rc_context(TEXT_AS_TEXT):
        figure.savefig(path, **options)
