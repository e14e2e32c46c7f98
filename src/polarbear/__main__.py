"""``python -m polarbear``: the command line."""

from polarbear.cli.main import main

raise SystemExit(main())
