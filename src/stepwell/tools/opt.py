"""stepwell-opt: read IR, run passes, print IR."""

from xdsl.xdsl_opt_main import xDSLOptMain

from stepwell.dialects import upstream
from stepwell.universe import STEPWELL_UNIVERSE

assert upstream, "imported for its patches of upstream syntax"


class OptMain(xDSLOptMain):
    """xdsl-opt with our dialects and passes."""

    def register_all_dialects(self) -> None:
        """Know ours as well."""
        super().register_all_dialects()
        for name, load in STEPWELL_UNIVERSE.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        """Know ours as well, and prefer them."""
        super().register_all_passes()
        self.available_passes.update(STEPWELL_UNIVERSE.all_passes)


def main() -> None:
    """Entry point."""
    OptMain("Stepwell optimizer driver").run()


if __name__ == "__main__":
    main()
