"""Texts for papers: a LaTeX table, the methods paragraph and the citation.

May import inference and racing.
"""

from polarbear.papers.latex import to_latex
from polarbear.papers.methods_text import describe_methods

__all__ = ["describe_methods", "to_latex"]
