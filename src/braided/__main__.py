"""`python -m braided` is the command `braided`."""

from braided.cli import main

main()
