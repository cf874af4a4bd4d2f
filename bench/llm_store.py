"""Run in the environment of llm: makes a logs.db that holds one conversation, by llm's own store.

    python llm_store.py DATABASE < TURNS     # a line of TURNS: ["question", "answer"]

Without a turn it makes an empty one, so that the first question does not pay for making the tables.
"""

import json
import sys

import llm  # type: ignore[import-not-found]
import sqlite_utils  # type: ignore[import-not-found]
from llm.logs import LogStore  # type: ignore[import-not-found]

THREAD = "01m8pe9pxq78chp5x9a5cghd5s"
TURN = (
    "insert into turns (id, thread_id, parent_message_hash, tip_message_hash, model, input_tokens, output_tokens,"
    " duration_ms, datetime_utc) values (?, ?, ?, ?, 'bench', 100, 20, 500, '2026-11-30T00:00:00+00:00')"
)

database = sqlite_utils.Database(sys.argv[1])
store = LogStore(database)
tip = None
with database.atomic():
    for number, line in enumerate(sys.stdin):
        question, answer = json.loads(line)
        if not number:
            store.create_thread("the benchmark", id=THREAD)
        parent = store.ensure_chain([llm.user(question)], tip)
        tip = store.ensure_chain([llm.assistant(answer)], parent)
        turn = f"01m8pe9pxr{number:016d}"
        database.execute(TURN, [turn, THREAD, parent, tip])
        search = "insert into turn_search (turn_id, prompt, response) values (?, ?, ?)"
        database.execute(search, [turn, question, answer])
    if tip:
        database["threads"].update(THREAD, {"tip_message_hash": tip})
database.close()
