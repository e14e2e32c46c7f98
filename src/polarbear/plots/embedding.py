"""A figure whose files hold their text as text: journals reject Type 3 fonts.

Imported when something is drawn, because it imports matplotlib.
"""

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

TEXT_AS_TEXT: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""Settings of matplotlib: TrueType fonts in PDF and PostScript, text in SVG."""


class PaperFigure(Figure):
    """A figure that is saved with TrueType fonts, whatever the settings of matplotlib are."""

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Save the figure, as :meth:`matplotlib.figure.Figure.savefig` does."""
        with rc_context(TEXT_AS_TEXT):
            super().savefig(fname, **kwargs)
