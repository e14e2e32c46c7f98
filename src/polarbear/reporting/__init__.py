"""Interactive reports, each in one HTML file that needs no network.

``content`` collects the data of the page, ``packing`` compresses them, and ``page`` combines them
with the files of ``assets``. The scripts there draw figures, and compute selections from the draws
in the page by the formulas of :mod:`polarbear.selection`.
"""
