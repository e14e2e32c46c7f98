"""A report that a reader can open, question and print: one HTML file that needs nothing else.

``content`` says what is on the page, as data; ``packing`` makes these small; ``page`` puts them and
the files of ``assets`` into one document. The scripts there draw with what the browser has, and
compute selections from the shipped draws by the formulas of :mod:`polarbear.selection`.
"""
