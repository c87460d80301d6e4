"""`python -m probity` is the `probity` command."""

from ._cli import main

main()
