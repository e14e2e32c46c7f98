"""``python -m polarbear``: the command line."""

from polarbear.cli import main

raise SystemExit(main())
