"""Ways to write or import a program."""
