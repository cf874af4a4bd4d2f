"""What a shell is offered at a Tab; `tests/system` presses Tab in real shells."""

from pathlib import Path

import pytest

from mino.cli import cli
from mino.commands.completion import completion, find_offer, quoted, split_line
from tests import homes

TREE = cli.to_info_dict(cli.make_context("mino", [], resilient_parsing=True))


@pytest.mark.parametrize(
    ("line", "words", "quote", "is_target"),
    [
        ("mino ", ["mino", ""], "", False),
        ("mino hist", ["mino", "hist"], "", False),
        (r"mino 北京\ 计", ["mino", "北京 计"], "", False),
        ("mino '北 京", ["mino", "北 京"], "'", False),
        (r'mino "a \"b\" \x $H', ["mino", r'a "b" \x $H'], '"', False),
        (r'mino "a\\" b', ["mino", "a\\", "b"], "", False),
        ("mino '' ", ["mino", "", ""], "", False),
        ("mino --x='a b'c", ["mino", "--x=a bc"], "", False),
        ("mino a\\", ["mino", "a"], "", False),
        ("mino a < ", ["mino", "a", ""], "", True),
        ("mino a <b", ["mino", "a", "b"], "", True),
        ("mino a 2> 'b c", ["mino", "a", "b c"], "'", True),
        ("mino a2>>b", ["mino", "a2", "b"], "", True),
        ("mino < a 2>/dev/null &> c d", ["mino", "d"], "", False),
        ("mino <(foo c", ["foo", "c"], "", False),
        ("mino a; mino b && mino c", ["mino", "c"], "", False),
        ("", [""], "", False),
    ],
)
def test_a_line_of_bash(line: str, words: list[str], quote: str, is_target: bool) -> None:
    assert split_line(line) == (words, quote, is_target)


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("value", ['it\'s "quoted" $HOME `x` \\', "北京 计划 🐕", "a*?[b]{c}!#~;|&()<>", "~x", "x=y"])
def test_what_is_quoted_is_read_again(value: str, quote: str) -> None:
    assert split_line(f"mino {quote}{quoted(value, quote)}{quote}") == (["mino", value], "", False)


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ([""], {"ask", "chat", "completion", "history", "session"}),
        (["history", ""], {"show", "verify", "forget"}),
        (["--home", "x", "session", ""], {"save", "load", "open", "import"}),
        (["--"], {"--home", "--version", "--help"}),
        (["ask", "-"], {"-m", "--model", "--dry-run", "-h"}),
        (["ask", "why", "-m", "x", "--"], {"--json"}),
        (["chat", ""], {"--local", "--context"}),
        (["ask", "--context", ""], {"all", "none"}),
        (["ask", "--context="], {"--context=all", "--context=none"}),
        (["history", "export", "--format", "t"], {"markdown", "text"}),
        (["history", "export", "-n", "3", "--format="], {"--format=markdown"}),
        (["history", "show", "--context", "--"], {"--turn", "--json"}),  # a flag there
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["ask", "--wait", ""], set()),
        (["nonsense", ""], {"ask"}),
    ],
)
def test_commands_options_and_values(words: list[str], some: set[str]) -> None:
    offer = find_offer(TREE, words, {})
    assert offer is not None and some <= {value for value, _ in offer} and bool(some) == bool(offer)


@pytest.mark.parametrize(
    "words",
    [
        ["ask", ""],
        ["ask", "two", "words", "x"],
        ["ask", "--", "-x"],
        ["ask", "--instructions", ""],
        ["ask", "--instructions=x"],
        ["ask", "-m", ""],
        ["--home", ""],
        ["history", "verify", "a", "b"],
        ["history", "recover", "--wait", "3", ""],
        ["session", "import", "old", ""],
    ],
)
def test_file_names_are_the_shells(words: list[str]) -> None:
    assert find_offer(TREE, words, {}) is None


def test_names_and_turns_of_the_home_that_the_line_means(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path / "a home", homes.completed(("第一\n个", "A"), ("b", "B")), 北京=b"")
    for words in (["--home", str(home)], [f"--home={home}"], ["--home", "$HOMES/a home"]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOMES", str(tmp_path))
            assert find_offer(TREE, [*words, "session", "load", ""], {}) == [("北京", "")]
            assert find_offer(TREE, [*words, "history", "forget", "1", ""], {}) == [("1", "第一 个"), ("2", "b")]
            assert find_offer(TREE, [*words, "history", "show", "--turn="], {"HOME": "/"}) == [
                ("--turn=1", "第一 个"),
                ("--turn=2", "b"),
            ]


def test_turns_of_the_conversation_that_the_line_means(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path / "home", homes.completed(("unnamed", "A")), 北京=homes.completed(("去哪里", "B")))
    words = ["--home", str(home), "history", "show", "--turn", ""]
    assert find_offer(TREE, words, {}) == [("1", "unnamed")]
    assert find_offer(TREE, words, {"MINO_SESSION": "北京"}) == [("1", "去哪里")]
    assert find_offer(TREE, ["--session=北京", *words], {"MINO_SESSION": "x"}) == [("1", "去哪里")]
    assert find_offer(TREE, [*words[:4], "--session", "没有", "--turn", ""], {}) == []
    assert find_offer(TREE, [*words[:2], "ask", "--session", ""], {}) == [("北京", "")]


def test_a_home_that_cannot_be_read_is_no_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "saved").write_text("no directory")
    (tmp_path / "sessions").write_text("no directory")
    for words in (["session", "load", ""], ["history", "forget", ""]):
        completion(TREE, "fish", words, {"MINO_HOME": str(tmp_path)})
    assert capfd.readouterr() == ("words\nwords\n", "")


@pytest.mark.parametrize(
    ("line", "replaced", "answer"),
    [
        ("mino session load a", "a", ["a: x y", "a: x z"]),
        ("mino session load a:", "", [" x y", " x z"]),  # bash breaks words at a colon
        (r"mino session load a:\ x\ z", r"\ x\ z", [r"\ x\ z"]),
        ("mino session load b", "b", [r"b\'s\ one"]),
        ("mino session load 'b", "b", [r"b'\''s one"]),
        ('mino session load "b', "b", ["b's one"]),
        ("mino session load c", "c", []),
    ],
)
def test_bash_gets_what_takes_the_place_of_the_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str, replaced: str, answer: list[str]
) -> None:
    home = homes.make_home(tmp_path / "home", None, **{"a: x y": b"", "a: x z": b"", "b's one": b""})
    completion(TREE, "bash", [line, replaced], {"MINO_HOME": str(home)})
    assert capfd.readouterr().out.splitlines() == ["words", *answer]
