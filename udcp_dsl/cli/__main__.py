"""`python -m udcp_dsl.cli`, if the script `udcp` is not on the path."""

from udcp_dsl.cli import main

main()
