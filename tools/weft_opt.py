"""`weft-opt`: parse IR, run passes over it, print it."""

from xdsl.xdsl_opt_main import xDSLOptMain


class WeftOptMain(xDSLOptMain):
    """xDSL's driver; weft's dialects and passes come in through the universe."""

    def __init__(self) -> None:
        super().__init__(description="weft modular optimizer driver")


def main() -> None:
    WeftOptMain().run()


if __name__ == "__main__":
    main()
