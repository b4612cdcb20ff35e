"""The driver of stepwell-opt: parse, transform, verify and print each chunk of the input."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean, listening, report
from stepwell.core.files import in_words, read_whole, write_whole
from stepwell.core.plugins import using, with_broken
from stepwell.core.targets import machine_for
from stepwell.dialects import upstream
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.printing import text_of
from stepwell.dialects.verification import verify
from stepwell.driver.blame import blame
from stepwell.driver.check_lowered import Introduced
from stepwell.driver.floors import LOOPS, first_stage, guard
from stepwell.driver.pass_pipeline import SOURCE as PIPELINE
from stepwell.driver.pass_pipeline import Step, parse
from stepwell.driver.pipeline import STAGE_NAMES, default_stages
from stepwell.driver.placing import place
from stepwell.driver.registry import Registry, registry
from stepwell.driver.reproducer import pipeline_of, plugins_of, write_reproducer
from stepwell.tools.opt.check import Checker
from stepwell.tools.opt.expectations import Expectations
from stepwell.tools.opt.instruments import IRPrinter, Statistics, Timer, fingerprint
from stepwell.tools.opt.messages import Messages
from stepwell.transforms.passes import Pass
from stepwell.transforms.verifying import verify_each

assert upstream, "imported for its patches of upstream syntax"

SPLIT = "// -----"


@dataclass
class Crash(Exception):
    """A pass raised an exception other than `CompileError`."""

    step: Step
    error: BaseException


@dataclass
class Driver:
    """One run of the tool."""

    options: argparse.Namespace
    messages: Messages = field(init=False)
    timer: Timer = field(init=False)
    statistics: Statistics = field(init=False)
    printer: IRPrinter = field(init=False)
    reproducer: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.messages = Messages(remarks=self.options.remarks)
        self.timer = Timer()
        self.statistics = Statistics()
        self.printer = IRPrinter(self.options)

    def run(self) -> int:
        """Run according to the options; return the exit code."""
        try:
            with using(self.options.plugin):
                return self._run()
        except CompileError as error:
            self._traceback()
            self.messages.say(error.diagnostic)
        except RecursionError:
            self._traceback()
            self.messages.say(Diagnostic("error", "the module is nested too deeply"))
        except MemoryError:
            self.messages.say(Diagnostic("error", "out of memory"))
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader closed the pipe: no error
        except OSError as error:
            self._traceback()
            self.messages.say(Diagnostic("error", in_words(error)))
        except Exception as error:  # in reading, checking or printing: a pass raises `Crash`
            self._traceback()
            found = blame(error)
            whose = f"{found.package} fails" if found.package else "compiler bug"
            self.messages.say(found.diagnostic(whose, "--debug shows where"))
        return 1

    def _run(self) -> int:
        options = self.options
        text = self._read()
        if not options.run_reproducer:
            return self._run_on(text)
        options.passes = pipeline_of(text, options.file)
        with using(plugins_of(text)):
            return self._run_on(text)

    def _run_on(self, text: str) -> int:
        options, known = self.options, registry()
        self.messages.sources[PIPELINE] = [options.passes]
        steps = parse(options.passes, known.passes, place(default_stages(), known.placements))
        self.printer.check_names(known.passes)
        if options.machine:
            machine_options = machine_for("c", options.machine).options()
            steps = [step.with_options(machine_options) for step in steps]
        self._refuse_inexact(steps)
        out, failed = io.StringIO(), False
        for number, (chunk, first_line) in enumerate(self._chunks(text)):
            if number:
                out.write(SPLIT + "\n")
            failed |= not self._chunk(known, steps, chunk, first_line, out)
        if not failed or options.split_input_file:
            self._write(out.getvalue())
        if options.timing:
            self.timer.report(sys.stderr)
        if options.stats:
            self.statistics.report(sys.stderr)
        return int(failed)

    def _read(self) -> str:
        name = self.options.file
        try:
            if name == "-":
                data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else b""
            else:
                data = read_whole(name)
            text = data.decode("utf-8")
        except OSError as error:
            raise CompileError(
                Diagnostic("error", f"cannot read {name}: {error.strerror}")
            ) from None
        except UnicodeDecodeError as error:
            message = f"{name} is not text: byte {error.start} is not UTF-8"
            raise CompileError(Diagnostic("error", message)) from None
        self.messages.sources[self.file] = text.splitlines()
        return text

    @property
    def file(self) -> str:
        """The input's name in messages."""
        return "<stdin>" if self.options.file == "-" else self.options.file

    def _chunks(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the modules of the input with their first line numbers."""
        if not self.options.split_input_file:
            yield text, 1
            return
        first, rows = 1, list[str]()
        for number, row in enumerate(text.splitlines(keepends=True), 1):
            if row.rstrip() == SPLIT:
                yield "".join(rows), first
                first, rows = number + 1, []
            else:
                rows.append(row)
        yield "".join(rows), first

    def _chunk(
        self, known: Registry, steps: list[Step], text: str, first: int, out: io.StringIO
    ) -> bool:
        """Process one module; return whether it succeeded."""
        expected = None
        if self.options.verify_diagnostics:
            expected = Expectations(text, self.file, first)
        said = self.messages.hear(expected)
        with listening(said):
            try:
                out.write(self._process(known, steps, text, first))
            except CompileError as error:
                self._traceback()
                said(error.diagnostic)
            except Crash as crash:
                self._traceback()
                said(self._crash_report(crash))
        if expected is None:
            return not said.errors
        problems = expected.unmet()
        for problem in problems:
            self.messages.say(problem)
        return not problems

    def _process(self, known: Registry, steps: list[Step], text: str, first: int) -> str:
        context = known.context(self.options.allow_unregistered_dialect)
        with self.timer.measure("parse"):
            module = parse_module(context, text, self.file, first)
        with self.timer.measure("verify input"):
            verify(module)
        checker = Checker(module, self.messages.note_to_user) if self.options.check else None
        first_of_it = self._begins_at(module)
        introduced: Introduced = {}
        done: list[Step] = []
        for number, step in _needed(steps, module):
            with self.timer.measure(f"{step}" + _ordinal(steps, number)):
                try:
                    self._step(context, module, step, introduced)
                except (CompileError, RecursionError, Crash) as error:
                    if self.options.reproducer or isinstance(error, Crash):
                        left = [*done, *steps[number:]]
                        self._reproduce(known, left, len(done), text, first)
                    raise
                done.append(step)
                if checker is not None:
                    with self.timer.measure("check"):
                        checker.compare(module, step)
        if self.options.target is not None:
            guard(module, first_of_it)
        with self.timer.measure("print"):
            return self._result(known, context, module)

    def _begins_at(self, module: ModuleOp) -> int:
        """Return the number of the first stage in the lowering of a module to be printed."""
        if self.options.target is None or self.options.no_check_bounds:
            return 0
        try:
            return first_stage(module)
        except CompileError:  # it mixes floors
            return LOOPS

    def _step(self, context: Context, module: ModuleOp, step: Step, introduced: Introduced) -> None:
        self.printer.before(step, module)
        count, mark = self.statistics.count(module), fingerprint(module)
        try:
            with self._verifying():
                ran = step.run(context, module, introduced)
            if self.options.verify_each:
                with self.timer.measure("verify"):
                    verify(module)
        except DiagnosticException as error:
            raise CompileError(Diagnostic("error", f"pass '{step}': {error}")) from error
        except (CompileError, RecursionError):
            raise
        except Exception as error:
            raise Crash(step, error) from error
        changed = fingerprint(module) != mark
        self.statistics.note(step, count, self.statistics.count(module), changed)
        self.printer.after(step, module, changed)
        self._warn_idle(step, ran, changed)

    @contextmanager
    def _verifying(self) -> Generator[None]:
        """Let passes verify their results, if each is to be verified."""
        token = verify_each.set(self.options.verify_each)
        try:
            yield
        finally:
            verify_each.reset(token)

    def _warn_idle(self, step: Step, ran: int, changed: bool) -> None:
        """Warn where a pass that was named had nothing to do."""
        if not ran:
            path = " in ".join(reversed(("builtin.module", *step.anchors)))
            report(Diagnostic("warning", f"pass '{step}' ran on nothing: there is no {path}"))
        elif changed or not step.named:
            return
        elif isinstance(step.pass_, Pass) and step.pass_.expects_work:
            report(Diagnostic("warning", f"pass '{step}' changed nothing"))

    def _refuse_inexact(self, steps: list[Step]) -> None:
        """Under --bit-exact, allow only passes that declare bit-exact results."""
        for step in steps if self.options.bit_exact else ():
            kind = step.pass_.numerics if isinstance(step.pass_, Pass) else "undeclared"
            if kind != "bit-exact":
                message = f"pass '{step}' is {kind}, which --bit-exact forbids"
                raise CompileError(Diagnostic("error", message))

    def _result(self, known: Registry, context: Context, module: ModuleOp) -> str:
        options = self.options
        if options.target is None:
            return text_of(
                module,
                generic=options.print_op_generic,
                locations=options.print_debuginfo,
                elide=options.elide_constants,
            )
        if options.target not in known.targets:
            names = ", ".join(known.targets) or "none"
            help = did_you_mean(options.target, known.targets) or f"there is {names}"
            unknown = Diagnostic("error", f"unknown target '{options.target}'", help=help)
            raise CompileError(with_broken(unknown))
        out = io.StringIO()
        printing = known.targets[options.target]()()
        try:
            printing.emit(context, module, out)
        except (CompileError, RecursionError):
            raise
        except Exception as error:
            message = f"target '{options.target}' cannot print the module"
            raise CompileError(blame(error).diagnostic(message)) from error
        return out.getvalue()

    def _reproduce(
        self, known: Registry, steps: list[Step], number: int, text: str, first: int
    ) -> None:
        """Write a reproducer with the module as it was before step ``number``."""
        context = known.context(self.options.allow_unregistered_dialect)
        module = parse_module(context, text, self.file, first)
        for step in steps[:number]:
            step.run(context, module)
        self.reproducer = write_reproducer(self.options.reproducer, module, steps[number:])

    def _crash_report(self, crash: Crash) -> Diagnostic:
        help = f"reproduce with: stepwell-opt --run-reproducer --debug {self.reproducer}"
        return blame(crash.error).diagnostic(f"pass '{crash.step}' crashed", help)

    def _traceback(self) -> None:
        if self.options.debug:
            traceback.print_exc()

    def _write(self, text: str) -> None:
        """Write the result completely, or not at all."""
        target = self.options.output
        if target == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        try:
            write_whole(Path(target), text)
        except OSError as error:
            message = f"cannot write {target}: {error.strerror}"
            raise CompileError(Diagnostic("error", message)) from None


def _needed(steps: Sequence[Step], module: ModuleOp) -> Iterator[tuple[int, Step]]:
    """Yield the steps with their numbers, without those of stages above the module's floor."""
    first = -1
    for number, step in enumerate(steps):
        if step.of:
            first = first_stage(module) if first < 0 else first
            if STAGE_NAMES.index(step.of) < first:
                continue
        yield number, step


def _ordinal(steps: Sequence[Step], number: int) -> str:
    """Return an ordinal for a pass that runs more than once, else ""."""
    before = [str(step) for step in steps[:number]].count(str(steps[number]))
    return f" ({before + 1})" if before else ""
