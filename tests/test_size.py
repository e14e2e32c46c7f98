"""The size of each room in lines of code: without docstrings, comments and blank lines.

A budget may fall; it rises only with a line in CHANGELOG.md that says what users got for it, or by
what another room falls if code moves.
`python tests/test_size.py` prints the table.
"""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "polarbear"
BUDGETS = {
    "inference": 8358,
    "readers": 5290,
    "racing": 3551,
    "data": 4104,
    "running": 3541,
    "plots": 2618,
    "cli": 2366,
    "store": 2265,
    "selection": 1608,
    "reporting": 1102,
    "design": 1058,
    "coordinator": 803,
    "calibration": 597,
    "live": 710,
    "priors": 418,
    "papers": 428,
    "simulation": 589,
    "top": 215,
}


def is_text(node):
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)


def count_code(text):
    """The lines of a module that hold a token other than a docstring or a comment.

    >>> count_code("'''A sum.'''\\n\\nx = (  # of two\\n    1\\n    + 2\\n)\\n")
    4
    """
    lines = {
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr | ast.Expr)]
    for node in nodes:  # whatever a string over several lines holds
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno > node.lineno:
            lines.update(range(node.lineno, node.end_lineno + 1))
    for node in nodes:  # but one that stands alone documents its module, class or constant
        if is_text(node):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def measure():
    """Lines and lines of code of each room; modules at the top level are the room "top"."""
    lines, code = Counter(), Counter()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        room, text = parts[0] if len(parts) > 1 else "top", path.read_text("utf-8")
        lines[room] += len(text.splitlines())
        code[room] += count_code(text)
    return lines, code


def test_no_room_exceeds_its_budget():
    _, code = measure()
    assert code.keys() == BUDGETS.keys()
    over = [f"{k}: {n} lines, {BUDGETS[k]} allowed" for k, n in code.items() if n > BUDGETS[k]]
    what = "shorten it, or raise the budget here and say in CHANGELOG.md what users got for it"
    assert not over, f"{'; '.join(over)}: {what}"


def test_a_statement_over_several_lines_counts_each_of_them():
    assert count_code('x = f(\n    1,\n\n    # why\n    2,\n)\n"""What x is."""\n') == 4


if __name__ == "__main__":
    lines, code = measure()
    for room in sorted(code, key=lambda room: -code[room]):
        print(f"{room:12} {lines[room]:7,} {code[room]:7,} {BUDGETS.get(room, 0):7,}")
    print(f"{'all':12} {lines.total():7,} {code.total():7,} {sum(BUDGETS.values()):7,}")
