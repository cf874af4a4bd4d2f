"""Where the key comes from: a variable, or a command in config.toml (mino(1), CONFIGURATION)."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from mino.errors import Misconfigured
from mino.settings import KEY_VARIABLE, Settings
from mino.text import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from subprocess import Popen

KEY_COMMAND_SECONDS = 30
_KEY_BYTES = 1 << 16  # of what the command prints, as much as is looked at


def find_key(settings: Settings, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The key for the server in `settings`, and where it comes from: a variable, or `api_key_command`.

    No key is (None, that variable). Raises Misconfigured where the variable of a service is unset, where the command
    fails, or where there is no key and the server is OpenAI's, which needs one.
    """
    variable, command = settings.api_key_env, settings.api_key_command
    if variable:
        key = environ.get(variable, "").strip().removeprefix(BYTE_ORDER_MARK)
        if key:
            return key, variable
        if "api_key_env" in settings.sources:
            raise Misconfigured(f"{variable} is not set, and {settings.sources['api_key_env']} names it for its key")
    if command:
        return _run(command), "api_key_command"
    if settings.base_url is None:
        raise Misconfigured(
            f"no key: {KEY_VARIABLE} is not set, and no server is named",
            f"export {KEY_VARIABLE}=…, or name a server with --base-url URL, or use the embedded model with --local",
        )
    return None, KEY_VARIABLE


def _run(command: str | list[str]) -> str:
    import subprocess

    words = ["sh", "-c", command] if isinstance(command, str) else command
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise Misconfigured(f"cannot run api_key_command: {error}") from None
    with process:
        try:
            said = _read_until_end(process)
        finally:
            process.kill()  # which does nothing after its end
    if said is None:
        raise Misconfigured(f"api_key_command did not finish within {KEY_COMMAND_SECONDS} seconds")
    if process.returncode:
        raise Misconfigured(f"api_key_command failed with exit status {process.returncode}")
    # The entries of password stores have more lines, which are no part of the key.
    key = said.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK).strip().partition("\n")[0].rstrip()
    if not key:
        raise Misconfigured("api_key_command printed no key")
    return key


def _read_until_end(process: "Popen[bytes]") -> bytes | None:
    """The beginning of what `process` prints until its own end; None where that does not come in time.

    Not until the end of the pipe: an agent that the command has started in the background holds that open.
    """
    import select
    import subprocess
    import time

    assert process.stdout
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    deadline = time.monotonic() + KEY_COMMAND_SECONDS
    said = b""
    while (left := deadline - time.monotonic()) > 0:
        has_ended = process.poll() is not None  # asked before the pipe is read, or its last words could be missed
        chunk = None
        with suppress(BlockingIOError):
            chunk = os.read(pipe, _KEY_BYTES)
        said = (said + (chunk or b""))[:_KEY_BYTES]
        if has_ended and (not chunk or len(said) == _KEY_BYTES):
            return said
        if chunk is None:
            select.select([pipe], [], [], min(left, 0.05))
        elif not chunk:
            with suppress(subprocess.TimeoutExpired):
                process.wait(left)
    return None
