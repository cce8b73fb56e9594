"""`python -m udcp_dsl.cli`, where the script `udcp` is not on the path."""

from udcp_dsl.cli import main

main()
