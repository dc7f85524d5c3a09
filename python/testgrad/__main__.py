"""`python -m testgrad` is the `testgrad` command."""

import sys

from testgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
