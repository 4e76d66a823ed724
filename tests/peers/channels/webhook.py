"""webhook.py: the official library of Standard Webhooks. Reads lines of JSON, and prints one for each:
{"verify": SECRET, "headers": {…}, "body": TEXT} → {"error": null | TEXT}
{"sign": SECRET, "id": ID, "at": SECONDS, "body": TEXT} → {"signature": TEXT}"""

import datetime
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError


def answer(asked):
    if "sign" in asked:
        at = datetime.datetime.fromtimestamp(asked["at"], datetime.timezone.utc)
        return {"signature": Webhook(asked["sign"]).sign(asked["id"], at, asked["body"])}
    try:
        Webhook(asked["verify"]).verify(asked["body"], asked["headers"])
        return {"error": None}
    except WebhookVerificationError as error:
        return {"error": str(error)}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
