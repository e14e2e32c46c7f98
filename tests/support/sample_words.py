"""Sample names with the first line of their docstring, messages, and sentences of the documents.

    python tests/support/sample_words.py --seed 1                 # 100 docstrings, 40 messages
    python tests/support/sample_words.py --seed 1 --docstrings 0 --messages 0 --sentences 40

A reader who has seen neither the code nor the documents judges each line: clear, needs a second
reading, or unclear. A sentence comes with its page, its heading and the sentence before it, which a
reader of the page has read. Headings, tables, code, references and pages that commands write are
left out.
"""

import argparse
import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "polarbear"
OTHER_EXCEPTIONS = ("MissingDependency", "WorkerLost")
SENTENCE_END = re.compile(r"""(?:(?<=[.!?])|(?<=[.!?][)"])) (?=["(]?[A-Z*`[])""")


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
    """Yield the text of every exception that the package makes, with {name} for its values."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and _is_exception(node.func):
                text = _text_of(node.args[0])
                # Less than two words: only a place, before a message that is sampled elsewhere.
                if len(re.findall(r"[a-z]{2,}", re.sub(r"{.*?}", "", text))) >= 2:
                    yield text


def sentences() -> Iterator[str]:
    """Yield the sentences of at least five words in README and docs, each after its context."""
    listing = ["git", "-C", PROJECT, "ls-files", "README.md", "docs/*.md"]  # not what builds copy
    pages = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    for page in pages:
        text = (PROJECT / page).read_text()
        text = re.sub(r"(?ms)^ *(```|:::).*?^ *\1$|^\$\$.*?\$\$$", "", text)
        heading, before = "", ""
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
            start = re.sub(r"^\s*([-*]|\d+\.) ", "", paragraph).lstrip()
            if start.startswith("#"):
                heading, before = start.splitlines()[0].lstrip("# "), ""
            is_source = re.search(r"\(\d{4}\)\.", paragraph)  # an entry of a list of references
            if start.startswith(("#", "|", "<", "{", ">", "!")) or is_source:
                continue
            # A link shows as its text in brackets, as a page shows it in another colour.
            plain = re.sub(r"(\[[^\]]*\])\([^)]*\)", r"\1", " ".join(start.split()))
            for sentence in SENTENCE_END.split(plain):
                if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 5:
                    yield f"{page}, {heading}: ({before or '-'})\n   {sentence}"
                before = sentence


def _is_exception(function: ast.expr) -> bool:
    """Whether this is the class of an exception, rather than a function that makes one."""
    name = _name_of(function)
    return name.lstrip("_")[:1].isupper() and name.endswith(("Error", *OTHER_EXCEPTIONS))


def _text_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_text_of, parts))
        case ast.FormattedValue(value=value):
            return f"{{{_name_of(value)}}}"
        case ast.BinOp(left=left, right=right):
            return _text_of(left) + _text_of(right)
        case ast.IfExp(body=body):
            return _text_of(body)
    return f"{{{_name_of(node)}}}"


def _name_of(node: ast.expr) -> str:
    """Return a word for a value: the name of its variable, attribute or function, else "..."."""
    match node:
        case ast.Attribute(attr="__name__"):
            return "type"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_")
        case ast.Call(func=function, args=[*_, last]) if _name_of(function) in ("join", "map"):
            return _name_of(last)
        case ast.Call(func=function, args=[first, *_]) if _is_formatting(_name_of(function)):
            return _name_of(first)
        case ast.Call(func=function):
            return _name_of(function)
        case ast.Subscript(value=value):
            return _name_of(value)
        case ast.GeneratorExp(generators=[one, *_]):
            return _name_of(one.iter)
    return "..."


def _is_formatting(function: str) -> bool:
    plain = ("len", "str", "repr", "int", "float", "sorted", "list", "set", "tuple")
    return function.startswith(("format", "escape", "shorten", "abbreviate")) or function in plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docstrings", type=int, default=100)
    parser.add_argument("--messages", type=int, default=40)
    parser.add_argument("--sentences", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for lines, number in (
        (docstrings(), options.docstrings),
        (messages(), options.messages),
        (sentences(), options.sentences),
    ):
        all_lines = list(lines)
        for k, line in enumerate(rng.sample(all_lines, min(number, len(all_lines))), 1):
            print(f"{k}. {line}")
        print()


if __name__ == "__main__":
    main()
