"""telegram_samples.py FILE...: reads updates with python-telegram-bot, which refuses what is none of Telegram's; prints a line of JSON
for each file: its name, and the fields of its message that the library does not know."""

import json
import sys
from pathlib import Path

from telegram import Update

for path in map(Path, sys.argv[1:]):
    update = Update.de_json(json.loads(path.read_text()), None)
    message = update.effective_message
    print(json.dumps({path.stem: sorted(message.api_kwargs) if message else []}), flush=True)
