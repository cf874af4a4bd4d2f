"""`mino ask` against other clients, after histories of the same turns."""

from collections.abc import Iterator
from pathlib import Path

from bench.environments import Missing
from bench.measure import Command, Failed, Run, TookTooLong, alternately, spread, walls
from bench.peers import PEERS, Peer
from bench.row import Row, compared
from bench.workbench import Workbench

SIZES, QUICK_SIZES = (0, 10, 1_000, 10_000, 100_000), (0, 1_000)
LIMIT, QUICK_LIMIT = 60.0, 20.0  # seconds for one answer of a peer

MOST = {
    "Codex CLI": {0: 1.0, 1_000: 0.6, 10_000: 0.2},
    "llm": dict.fromkeys(SIZES, 0.25),
}


def rows(bench: Workbench, cache: Path, stores: Path) -> Iterator[Row]:
    """A row a peer and size; a peer that is missing or does not work has one that says why."""
    peers: list[Peer] = []
    for make in PEERS:
        try:
            peers.append(make(cache, stores, bench.server))
        except Missing as missing:
            name = getattr(make, "name", make.__name__)
            yield Row("peers", f"mino ask against {name}", note=f"missing: {missing}")
    for count in QUICK_SIZES if bench.quick else SIZES:
        yield from _size(bench, peers, count)


def _size(bench: Workbench, peers: list[Peer], count: int) -> Iterator[Row]:
    commands = [bench.ask(count)]
    mino_note = _try(bench, commands[0], count)
    working: list[tuple[Peer, str]] = []
    slow: list[tuple[Peer, Command]] = []
    for peer in peers:
        try:
            command = peer.command(count, QUICK_LIMIT if bench.quick else LIMIT)
            working.append((peer, _try(bench, command, count)))
            commands.append(command)
        except TookTooLong as too_long:
            slow.append((peer, too_long.command))
        except (Failed, Missing) as reason:
            yield Row("peers", _what(peer, count), note=f"missing: {reason}")
    mino, *others = alternately(commands, bench.rounds)
    for (peer, note), runs in zip(working, others, strict=True):
        notes = "; ".join(filter(None, (mino_note, note)))
        yield compared(
            "peers", _what(peer, count), mino, runs, names=("mino", peer.name), most=_most(peer, count), note=notes
        )
    for peer, command in slow:
        yield _too_slow(peer, command, count, mino)


def _what(peer: Peer, count: int) -> str:
    return f"mino ask against {peer.name} {peer.version}, {count:,} turns"


def _most(peer: Peer, count: int) -> float | None:
    return MOST.get(peer.name, {}).get(count)


def _try(bench: Workbench, command: Command, count: int) -> str:
    """Run `command` once; what is wrong with the history that the server got from it, or nothing."""
    bench.server.forget()
    command.run()
    got, wanted = bench.server.received_items(), 2 * count + 1
    # A peer may add a message that reports its environment; what it must not do is leave turns out.
    return "" if wanted <= got <= wanted + 2 else f"{command.name} sent {got:,} messages, expected {wanted:,}"


def _too_slow(peer: Peer, command: Command, count: int, mino: list[Run]) -> Row:
    """The row of a peer that was ended at its limit: the true ratio is smaller than the one at the limit."""
    figure = spread([wall / command.limit for wall in walls(mino)])
    most = _most(peer, count)
    return Row(
        "peers",
        _what(peer, count),
        "" if most is None else f"<= {most:g} x {peer.name}",
        figure,
        met=True if most is not None and figure.median <= most else None,
        note=f"{peer.name} took over {command.limit:g} s and was ended; the ratio is at most this",
        seconds={"mino": spread(walls(mino))},
    )
