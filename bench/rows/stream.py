"""The answer to the screen: what a long one costs, and whether a piece ever waits for the next."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

from bench.measure import Command, added, alternately, cpus, ratios, spread, walls
from bench.row import Row
from bench.server import Pieces, chunk, closing, delta, head, opening
from bench.workbench import Workbench

MOST = 2.0
WORDS = ("The ", "capital ", "of ", "France ", "is ", "Paris", ", ", "法国", "的", "首都", "是", "巴黎", "。🗼", "\n")
CHUNKED = "transfer-encoding: chunked"
PATIENCE = 10.0  # seconds for one piece to come through


def costs(bench: Workbench) -> Iterator[Row]:
    """What the pieces of a long answer add to `ask`, against a plain loop over the same bytes.

    In both ways in which servers send them: with a connection that ends, where the reads find as many pieces as have
    come, and as a chunked body with a chunk a piece, where an HTTP library gives out one at a time.
    """
    count = 20_000 if bench.quick else 100_000
    for chunked in (False, True):
        replies = [long_answer(number, chunked) for number in (count, 1)]
        commands: list[Command] = []
        for reply in replies:
            prepare = _answering(bench, reply)
            commands.append(bench.mino(bench.files, "ask", "--no-history", "Tell me all.", prepare=prepare))
            commands.append(bench.floor("stream", bench.server.url, prepare=prepare))
        more, floor_more, less, floor_less = alternately(commands, bench.rounds)
        mino, floor = added(walls(more), walls(less)), added(walls(floor_more), walls(floor_less))
        figure = ratios(mino, floor)
        whole, whole_cpu = ratios(walls(more), walls(floor_more)), ratios(cpus(more), cpus(floor_more))
        yield Row(
            "stream",
            f"answer to screen, {count:,} deltas, {_framing(chunked)}",
            f"<= {MOST:g} x a plain loop",
            figure,
            ratios(added(cpus(more), cpus(less)), added(cpus(floor_more), cpus(floor_less))),
            figure.median <= MOST,
            f"beyond one delta: {spread(mino)} s against {spread(floor)} s; whole processes {whole}, CPU {whole_cpu}",
            {"mino": spread(mino), "loop": spread(floor)},
        )


def held_back(bench: Workbench) -> Iterator[Row]:
    """Whether each delta is on stdout before the server sends the next one."""
    for chunked in (False, True):
        held = Held(100, chunked)
        bench.server.reply = held.pieces
        shown = _watch(bench.mino(bench.files, "ask", "--no-history", "Slowly, please."), held.go_on)
        waits = [1000 * (there - here) for here, there in zip(held.sent, shown, strict=False)]
        yield Row(
            "stream",
            f"no delta waits for a later one, {_framing(chunked)}: ms until it is shown",
            "each is shown before the next is sent",
            spread(waits) if len(waits) > 1 else None,
            met=len(waits) == held.count,
            note=f"{len(waits)} of {held.count} came through, the slowest after {max(waits, default=0):.1f} ms",
        )


class Held:
    """An answer whose server sends the next delta when the last one was shown; `sent` is when each was sent."""

    def __init__(self, count: int, chunked: bool) -> None:
        self.count = count
        self.sent: list[float] = []
        self.go_on = threading.Event()
        self._chunked = chunked

    def pieces(self) -> Iterator[bytes]:
        frame = chunk if self._chunked else bytes
        yield head(CHUNKED if self._chunked else "connection: close") + frame(opening())
        for number in range(self.count):
            self.go_on.clear()
            self.sent.append(time.perf_counter())
            yield frame(delta(number, "x"))
            if not self.go_on.wait(PATIENCE):
                return
        yield frame(closing("x" * self.count)) + (b"0\r\n\r\n" if self._chunked else b"")


def _watch(command: Command, shown: threading.Event) -> list[float]:
    """When each byte of the answer came out of `command`, which is told to go on by `shown`."""
    environ = {"PATH": os.environ.get("PATH", os.defpath), **command.environ}
    times = []
    with subprocess.Popen(
        command.argv, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        while piece := os.read(process.stdout.fileno(), 4096):
            times += [time.perf_counter()] * piece.count(b"x")
            shown.set()
    return times


def _framing(chunked: bool) -> str:
    return "a chunk each" if chunked else "ended by the connection"


def long_answer(count: int, chunked: bool) -> list[bytes]:
    """An answer of `count` deltas, made beforehand, in pieces of many events."""
    frame = chunk if chunked else bytes
    texts = [WORDS[number % len(WORDS)] for number in range(count)]
    events = [frame(delta(number, text)) for number, text in enumerate(texts)]
    pieces = [head(CHUNKED if chunked else "connection: close") + frame(opening())]
    pieces += [b"".join(events[start : start + 500]) for start in range(0, count, 500)]
    return [*pieces, frame(closing("".join(texts))) + (b"0\r\n\r\n" if chunked else b"")]


def _answering(bench: Workbench, reply: Pieces) -> Callable[[], None]:
    def prepare() -> None:
        bench.server.reply = lambda: reply

    return prepare
