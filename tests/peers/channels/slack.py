"""slack.py, with slack_sdk; prints a line of JSON for what it gets.

    talk URL BOT-TOKEN APP-TOKEN     does what our transport does, in the same order
    refused URL BOT-TOKEN COUNT      sends so many messages
    listen URL BOT-TOKEN APP-TOKEN   listens by Socket Mode, until its second socket is open
    sign URL SIGNING-SECRET BODY     signs a request as Slack does
"""

import json
import sys
import threading

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse


def show(**facts):
    print(json.dumps(facts), flush=True)


def ours(message):
    return message.get("metadata", {}).get("event_payload", {}).get("id") == "d-1"


def talk(web, app_token):
    me = web.auth_test()
    web.apps_connections_open(app_token=app_token)
    show(user=me["user_id"], bot=me["bot_id"], name=me["user"])
    label = {"type": "plain_text", "text": "Yes"}
    button = {"type": "button", "action_id": "choice-0", "text": label, "value": "A-1:abc:yes"}
    metadata = {"event_type": "muster_message", "event_payload": {"id": "d-1"}}
    sent = web.chat_postMessage(
        channel="C1",
        thread_ts="1700000000.000100",
        text="*Delete* it?",
        metadata=metadata,
        blocks=[
            {"type": "section", "text": {"type": "mrkdwn", "text": "*Delete* it?"}},
            {"type": "actions", "elements": [button]},
        ],
        unfurl_links=False,
        unfurl_media=False,
    )
    show(channel=sent["channel"], ts=sent["ts"])
    found = web.conversations_replies(
        channel="C1", ts="1700000000.000100", oldest="0", include_all_metadata=True, limit=200
    )
    show(found=[message["ts"] for message in found["messages"] if ours(message)])
    web.chat_update(channel="C1", ts=sent["ts"], text="Deleted", metadata=metadata, blocks=[])
    web.files_upload_v2(filename="b.txt", title="b.txt", content="bytes of b", channel="C1", thread_ts="1.2")
    web.chat_postEphemeral(channel="C1", user="U1", text="Done")
    web.reactions_add(channel="C1", timestamp=sent["ts"], name="eyes")
    try:
        web.reactions_add(channel="C1", timestamp=sent["ts"], name="eyes")
    except SlackApiError as error:
        show(again=error.response["error"])
    web.assistant_threads_setStatus(channel_id="C1", thread_ts="1.2", status="is writing…", loading_messages=["Writing…"])


def attempt(web):
    try:
        web.chat_postMessage(channel="C1", text="x")
    except SlackApiError as error:
        status, headers = error.response.status_code, error.response.headers
        wait = headers.get("retry-after") or headers.get("Retry-After")
        show(error=error.response["error"], status=status, wait=wait)


def listen(web, app_token):
    client = SocketModeClient(app_token=app_token, web_client=web)
    hellos, renewed = [], threading.Event()

    def on_message(_, message, __):
        if message.get("type") == "hello":
            hellos.append(message)
            if len(hellos) == 2:
                renewed.set()

    def on_request(client, request):
        event = request.payload["event"]
        show(type=request.type, envelope=request.envelope_id, text=event["text"], user=event["user"])
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    client.message_listeners.append(on_message)
    client.socket_mode_request_listeners.append(on_request)
    client.connect()
    show(renewed=renewed.wait(20))
    client.close()


what, url, token, more = sys.argv[1:5]
web = WebClient(token, base_url=f"{url}/api/")
if what == "talk":
    talk(web, more)
elif what == "refused":
    for _ in range(int(more)):
        attempt(web)
elif what == "listen":
    listen(web, more)
elif what == "sign":
    show(signed=SignatureVerifier(token).generate_signature(timestamp="1700000000", body=more))
