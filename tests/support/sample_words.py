"""Sample names with the first line of their docstring, and error messages, for a reader to judge.

    python tests/support/sample_words.py --seed 1                 # 100 docstrings, 40 messages
    python tests/support/sample_words.py --seed 1 --docstrings 20 --messages 0

A reader who has not seen the code judges each line: clear, needs a second reading, or unclear.
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "polarbear"


def docstrings() -> Iterator[str]:
    """Yield "room.name: first line" of every function, method and class that has a docstring."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".")
        yield from _docstrings_in(ast.parse(path.read_text()), module)


def _docstrings_in(node: ast.AST, place: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{place}.{child.name}"
            text = ast.get_docstring(child)
            if text:
                yield f"{name}: {text.splitlines()[0]}"
            yield from _docstrings_in(child, name)


def messages() -> Iterator[str]:
    """Yield the text of every exception that the package raises, with {...} for its values."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = _text_of(node.exc.args[0])
                if text:
                    yield text


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else "{...}" for part in node.values
        ]
        return "".join(parts)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docstrings", type=int, default=100)
    parser.add_argument("--messages", type=int, default=40)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for lines, number in ((docstrings(), options.docstrings), (messages(), options.messages)):
        all_lines = list(lines)
        for k, line in enumerate(rng.sample(all_lines, min(number, len(all_lines))), 1):
            print(f"{k}. {line}")
        print()


if __name__ == "__main__":
    main()
