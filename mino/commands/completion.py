"""`mino completion`: the script for a shell, and what the script asks for at each Tab.

The script runs `mino completion SHELL` with the words of the command line and prints nothing itself. The first line
of the answer is `words`, and the candidates follow; or it is `files`, and the shell completes file names in its own
way. So does a script that gets no answer: completion must never take away what the shell can do without it.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mino.errors import MinoError
from mino.home import Home, find_home
from mino.terminal import output
from mino.text import one_line, say_nothing, width

BASH = r"""_mino() {
    mapfile -t COMPREPLY < <("$1" completion bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    if [[ ${COMPREPLY[0]} == words ]]; then compopt +o default; fi
    unset 'COMPREPLY[0]'
    if ((${#COMPREPLY[@]} > 1)); then compopt -o filenames; fi
}
complete -o default -o nosort -F _mino mino
"""
ZSH = r"""#compdef mino
_mino() {
    local line
    local -a offered values shown
    offered=("${(@f)$("${(Q)words[1]}" completion zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ $offered[1] != words ]]; then
        if [[ $PREFIX == --*=* ]]; then compset -P 1 '*='; fi
        _files
        return
    fi
    for line in "${(@)offered[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        shown+=("${line#*$'\t'}")
    done
    compadd -V mino -d shown -a values
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _mino "$@"
else
    if ! (( $+functions[compdef] )); then autoload -Uz compinit && compinit; fi
    compdef _mino mino
fi
"""
# Where the condition does not hold, fish completes file names; its function for them knows neither quotes nor `~`.
FISH = r"""function __mino_offers
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -g __mino_offer ($before[1] completion fish -- $before[2..] "$current" 2>/dev/null)
    test "$__mino_offer[1]" = words
end
complete -c mino -n __mino_offers -f -k -a '(printf "%s\n" $__mino_offer[2..])'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

# What a value is, by the name of its option or argument in `mino.cli`; a name that is nowhere here is for a person.
_FILES = {"attach", "file", "files", "home", "instructions", "prompt", "schema"}
_SESSIONS = {"name", "old", "session"}
_TURNS = {"turn", "turns"}
_OF_CONFIG = {"model", "service"}
_WORDS = {"context": ("all", "none")}

Offer = Sequence[tuple[str, str]]
"""Candidates, each with a few words about it or none."""

Tree = Mapping[str, Any]
"""A command, an option or an argument, as click's `to_info_dict` describes it."""


def completion(tree: Tree, shell: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Print the script for `shell`; with `words` what the last of them may become. `tree` is of the whole program.

    bash passes two words: the command line up to the cursor, and the end of it that a candidate takes the place of.
    """
    if not words:
        output.show(SCRIPTS[shell])
        return
    quote, skip, is_target = "", 0, False
    if shell == "bash":
        line, replaced = words[0], words[-1]
        before, quote, _ = split_line(line[: len(line) - len(replaced)])
        (_, *words), _, is_target = split_line(line)
        skip = len(before[-1])
    offer = None if is_target or not words else find_offer(tree, words, environ)
    output.show_lines(["files"] if offer is None else ["words", *_format(shell, offer, words[-1], quote, skip)])


def _format(shell: str, offer: Offer, current: str, quote: str, skip: int) -> Iterator[str]:
    if shell == "bash":
        values = [value[skip:] for value, _ in offer if value.startswith(current)]
        # Several are quoted by bash, which alone knows how much of them it inserts; but one that it quotes itself gets
        # a slash if a directory has its name.
        yield from (quoted(values[0], quote),) if len(values) == 1 else values
        return
    widest = max((width(value) for value, _ in offer), default=0)
    for value, purpose in offer:
        line = f"{value}{' ' * (widest - width(value))}  {purpose}" if purpose else value
        yield f"{value}\t{line if shell == 'zsh' else purpose}"


def find_offer(tree: Tree, words: Sequence[str], environ: Mapping[str, str]) -> Offer | None:
    """What the last of `words` may become, whatever it begins with; None for the name of a file."""
    command, operands, is_over = tree, 0, False
    call: dict[str, str] = {}  # what is said of the home, the conversation and the service
    option: Tree | None = None  # the one that the next word is the value of
    *before, current = words
    for word in before:
        value: str | None = word
        known, option = option, None
        if not known and word == "--" and not is_over:
            is_over = True
        elif not known and (is_over or word == "-" or not word.startswith("-")):
            operands += word not in command.get("commands", ())
            command = command.get("commands", {}).get(word, command)
        else:
            if not known:
                known, value = _split_option(command, word)
            if known and value is None and not known["is_flag"]:
                option = known
            if known and known["name"] in ("home", "session", "service") and value is not None:
                call[known["name"]] = value
    prefix = ""
    if not option and not is_over and current.startswith("-"):
        option, value = _split_option(command, current)
        if value is None or not current.startswith("--"):
            return _options(command)
        prefix = current.partition("=")[0] + "="
    if not option and "commands" in command:
        return [(name, each["help"].rstrip(".")) for name, each in command["commands"].items()]
    parameter = option or _operand(command, operands)
    offer = _values(parameter, call, environ) if parameter else _options(command)
    return offer and [(prefix + value, purpose) for value, purpose in offer]


def _split_option(command: Tree, word: str) -> tuple[Tree | None, str | None]:
    """The option that `word` names, and the value in it, if there is one: `--turn=3`, `-n3`."""
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    for each in command["params"]:
        if name in each["opts"] and each["param_type_name"] == "option":
            return each, value if equals else None
    return None, value if equals else None


def _options(command: Tree) -> Offer:
    options = (each for each in command["params"] if each["param_type_name"] == "option")
    return [
        (name, (each["help"] or "").rstrip(".")) for each in options for name in each["opts"] + each["secondary_opts"]
    ]


def _operand(command: Tree, number: int) -> Tree | None:
    arguments = [each for each in command["params"] if each["param_type_name"] == "argument"]
    if arguments and arguments[-1]["nargs"] == -1:
        number = min(number, len(arguments) - 1)
    return arguments[number] if number < len(arguments) else None


def _values(parameter: Tree, call: Mapping[str, str], environ: Mapping[str, str]) -> Offer | None:
    name = parameter["name"]
    if name in _FILES:
        return None
    if name in _SESSIONS | _TURNS | _OF_CONFIG:
        try:
            # As the shell will have it: no shell has expanded the words of a line that is being typed.
            place = find_home(os.path.expandvars(os.path.expanduser(call.get("home", ""))) or None, environ)
            if name in _OF_CONFIG:
                return _of_config(place, name, call.get("service") or environ.get("MINO_SERVICE") or "")
            if name in _TURNS:
                return _turns(place, call.get("session") or environ.get("MINO_SESSION") or None)
            return _sessions(place)
        except MinoError:  # Tab is no place for a message
            return [] if name != "model" else None
    return [(word, "") for word in parameter["type"].get("choices", _WORDS.get(name, ()))]


def _sessions(home: Home) -> Offer:
    from mino.sessions import saved  # commands and options come without what reads conversations

    return [(name, "") for name in saved.names(home.saved)]


def _of_config(home: Home, name: str, service: str) -> Offer | None:
    """The services, or the aliases of models that a service has; without any a model may be a file."""
    from mino.config import read_config

    config = read_config(home.config)
    if name == "service":
        return [(each, str(table.get("base_url") or "")) for each, table in config.services.items()]
    chosen = config.services.get(service or config.settings.get("service", ""), {})
    aliases = chosen.get("models", {})
    return list(aliases.items()) or None


def _turns(home: Home, session: str | None) -> Offer:
    from mino.sessions.reading import read_session

    reading = read_session(home, session, say_nothing)
    return [(str(turn.number), one_line(turn.user, 40)) for turn in reading.turns] if reading else []


# What a line of bash is made of. Quotes may be open at the end of the line.
_PIECE = re.compile(
    r"""(?P<blank>[ \t\n]+)|(?P<redirection>&?[<>]+[|&]?)|(?P<end>[;|&()])"""
    r"""|'(?P<single>[^']*)(?P<single_end>'?)|"(?P<double>(?:\\.|[^"\\])*\\?)(?P<double_end>"?)"""
    r"""|\\(?P<escaped>.?)|(?P<plain>[^\s<>;|&()'"\\]+|.)""",
    re.DOTALL,
)


def split_line(line: str) -> tuple[list[str], str, bool]:
    """The words of the last command in `line` without its redirections, the last one being empty after a blank.

    And the quote that is open at its end, and whether the last word is the file of a redirection.
    """
    words: list[str] = []
    word: str | None = None
    quote, is_target = "", False
    for piece in _PIECE.finditer(line):
        kind, quote = piece.lastgroup, ""
        if kind in ("blank", "redirection", "end"):
            is_number = kind == "redirection" and word is not None and word.isdecimal()  # of a descriptor
            if word is not None and not is_target and not is_number:
                words.append(word)
            is_target = kind == "redirection" or (kind == "blank" and is_target and word is None)
            word = None
            words = [] if kind == "end" else words
            continue
        word = word or ""
        if kind == "single_end":
            word += piece["single"]
            quote = "" if piece["single_end"] else "'"
        elif kind == "double_end":
            word += re.sub(r'\\([$`"\\])', r"\1", piece["double"])
            quote = "" if piece["double_end"] else '"'
        else:
            word += piece["escaped"] or piece["plain"] or ""
    return [*words, word or ""], quote, is_target


def quoted(value: str, quote: str) -> str:
    """`value` as bash wants it after an open `quote`, which it closes itself; without one with backslashes."""
    if quote == "'":
        return value.replace("'", "'\\''")
    return re.sub(r'[$`"\\]' if quote else r"[^\w@%+=:,./\x80-\U0010ffff-]", r"\\\g<0>", value)
