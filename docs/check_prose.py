"""Count the words of the documents, and neighbouring sentences that repeat each other.

``python docs/check_prose.py``, in the root of the project, or with folders or pages. Neighbouring
sentences of a paragraph repeat each other if they share two or more content words: words of four or
more letters that are not in a short list. Code, tables and headings count only as words.
"""

import re
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

FOLDERS = ("docs/tutorials", "docs/how-to", "docs/explanation", "docs/reference", "docs/design")
STOP = re.findall(
    r"\w+",
    """about above after again against also although always among another because been before being
    below between both cannot could does done down during each either else even ever every from have
    here however into itself just least less like many more most much must neither never next once
    only other others over same shall should since some still such than that their them then there
    therefore these they this those though through under until upon very were what when where
    whether which while whose will with within without would your yours""",
)
BLOCK = re.compile(r"(?ms)^ *(```+|:::+).*?^ *\1 *$|^---$.*?^---$|^ *\|.*?$|^#.*?$")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?:])[)*]*\s+(?=[`*(\"]*[A-Z])")


def list_pairs(text: str) -> list[tuple[str, str]]:
    """Return the neighbouring sentences of each paragraph or item of a list."""
    text = LINK.sub(r"\1", BLOCK.sub("\n\n", text))
    paragraphs = re.split(r"\n\s*\n|\n *(?:[-*]|\d+\.) ", text)
    return [pair for part in paragraphs for pair in pairwise(END.split(part.strip()))]


def has_repetition(pair: tuple[str, str]) -> bool:
    """Whether two sentences share two or more content words."""
    words = (set(re.findall(r"[^\W\d_]{4,}", one.lower())) for one in pair)
    return len(set.intersection(*words).difference(STOP)) >= 2


def main() -> None:
    """Print words and the share of repeating pairs of each page, each folder and all."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", *(sys.argv[1:] or FOLDERS)]
    counts = defaultdict(lambda: [0, 0, 0])
    for name in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split():
        page = Path(name)
        text = page.read_text("utf-8") if page.suffix == ".md" and page.exists() else ""
        pairs = list_pairs(text)
        found = len(text.split()), len(pairs), sum(map(has_repetition, pairs))
        for one in {name, f"{page.parent.as_posix()}/", "all"} if text else ():
            counts[one] = [a + b for a, b in zip(counts[one], found, strict=True)]
    for name, (words, pairs, repeating) in sorted(counts.items(), key=lambda one: one[0]):
        share = f"{repeating / pairs:.0%}" if pairs else "-"
        print(f"{words:7,} words  {share:>4} of {pairs:4} pairs repeat  {name}")


if __name__ == "__main__":
    main()
