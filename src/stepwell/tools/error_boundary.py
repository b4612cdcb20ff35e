"""Run a subcommand and report any exception as one message, not a traceback."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable

from stepwell.core.checks import UnfitSizes
from stepwell.core.diagnostics import CompileError, Diagnostic, listening
from stepwell.core.files import in_words
from stepwell.core.guards import OutOfBounds, checked_place, is_checked
from stepwell.core.plugins import using
from stepwell.tools.opt.messages import Messages


def guarded(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Return the result of ``command``; 1 after an error, which is shown with its source line."""
    messages = Messages(remarks=getattr(options, "remarks", False))
    options.messages = messages
    try:
        with listening(messages.say), using(options.plugin):
            return command(options)
    except BrokenPipeError:
        raise
    except CompileError as error:
        _traceback(options)
        messages.say(error.diagnostic)
    except OSError as error:
        _traceback(options)
        messages.say(Diagnostic("error", in_words(error)))
    except (UnfitSizes, OutOfBounds) as error:
        _traceback(options)
        messages.say(Diagnostic("error", error.words, error.place))
    except (TypeError, ValueError) as error:
        _traceback(options)
        messages.say(Diagnostic("error", str(error), checked_place(error)))
    except RecursionError:
        _traceback(options)
        messages.say(Diagnostic("error", "the module is nested too deeply"))
    except MemoryError:
        messages.say(Diagnostic("error", "out of memory"))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        _traceback(options)
        messages.say(_unexpected(error))
    return 1


def _unexpected(error: Exception) -> Diagnostic:
    """Return the message for an exception that the program's check or a bug of ours raised."""
    said = f"{type(error).__name__}: {error}"
    if is_checked(error):
        return Diagnostic("error", said, checked_place(error))
    said = f"compiler bug: {said}".splitlines()[0]
    return Diagnostic("error", said, help="'stepwell --debug' shows where")


def _traceback(options: argparse.Namespace) -> None:
    if options.debug:
        traceback.print_exc(file=sys.stderr)
