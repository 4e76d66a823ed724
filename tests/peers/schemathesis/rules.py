"""What a request that fits the OpenAPI document may be refused for with 422, and why the document can't say it.

A 422 to a fitting request has to name a place and a code that stand here for its operation (`hooks.py`). Anything else is
a failure, and so is what stands here and no case of a run has needed (`run`). The list only shrinks.
"""


def each(operations, places, codes, why):
    return [(operation, place, code, why) for operation in operations for place in places for code in codes]


NEW_CHANNEL, CHANNEL = "POST /channel", "PATCH /channel/{id}"
CHANNELS = [NEW_CHANNEL, CHANNEL]
CREDENTIALS = ["POST /credential", "PATCH /credential/{id}"]
ANSWER = "PATCH /approval/{id}/answer"
OBJECTS = ["/webhook", "/email", "/code_host", "/drive", "/calendar"]

# What is wrong where: (operation, place, code, why it is not in the document). `#` is any number.
RULES = [
    (
        "GET /agent/{agent_id}/conversation/{conversation_id}/message",
        "after_seq",
        "NOT_ALLOWED",
        "one cursor or the other: OpenAPI has no conditions between parameters",
    ),
    # What may be answered depends on the approval: which options its question has, whether several, whether text.
    (ANSWER, "/options/#", "NOT_ALLOWED", "the question's own options"),
    (ANSWER, "/options", "NOT_ALLOWED", "the question takes one option only"),
    (ANSWER, "/options", "REQUIRED", "an action needs an option, a question one or a text"),
    (ANSWER, "/text", "NOT_ALLOWED", "the question takes options only"),
    # An id in a body names nothing: 404 is for the record that the path names.
    *each(["POST /agent"], ["/server_id", "/image_id"], ["NOT_FOUND"], "the server and the image exist"),
    ("POST /agent", "/image_id", "REQUIRED", "the organization has a default image, or has none"),
    (NEW_CHANNEL, "/agent_id", "NOT_FOUND", "the agent exists"),
    (CHANNEL, "/alert_recipient_user_ids/#", "NOT_FOUND", "members exist"),
    (CHANNEL, "/notify_conversation_id", "NOT_FOUND", "the conversation exists"),
    ("PUT /credential/{id}/agents", "/agent_ids/#", "NOT_FOUND", "the agents exist"),
    # Each transport has keys of its own; which one an edited channel has is not in the request.
    (NEW_CHANNEL, "/transport", "NOT_ALLOWED", "INTERNAL is a transport, and never created by hand"),
    *each(CHANNELS, OBJECTS, ["NOT_ALLOWED"], "another transport's"),
    *each([CHANNEL], OBJECTS, ["WRONG_TYPE"], "its own transport's may not be null"),
    *each(CHANNELS, ["/bot_token"], ["NOT_ALLOWED", "REQUIRED"], "a bot's, and needed there"),
    *each(CHANNELS, ["/webhook/outbound_url"], ["NOT_ALLOWED", "REQUIRED"], "an address that can be reached; where it sends"),
    *each(CHANNELS, ["/webhook/signature_header"], ["NOT_ALLOWED"], "a header's name, and none that means something else"),
    *each(CHANNELS, ["/email/imap/host", "/email/smtp/host", "/email/smtp/from"], ["NOT_ALLOWED"], "hosts, an address"),
    ("POST /channel/{id}/whitelist", "/origin_id", "NOT_ALLOWED", "in a mailbox's list, an address"),
    *each(
        CHANNELS,
        ["/email/imap/host", "/email/imap/user", "/email/imap/pass", "/email/smtp/host", "/email/smtp/from"],
        ["REQUIRED"],
        "what its direction needs",
    ),
    (CHANNEL, "/email/smtp/pass", "REQUIRED", "a password is kept for the host that it was given for"),
    *each(CHANNELS, ["/code_host/installation_id"], ["REQUIRED"], "what its transport needs"),
    *each(CHANNELS, ["/code_host/repos/#"], ["NOT_ALLOWED"], "owner/name, neither of them a dot or two"),
    (NEW_CHANNEL, "/drive/folder_id", "REQUIRED", "what its transport needs"),
    *each(CHANNELS, ["/calendar/calendar_whitelist/#/id"], ["NOT_ALLOWED"], "each calendar once"),
    # No pattern says exactly what is a host or an address, nor what is JSON; JSON Schema knows no keys of lists.
    *each(CREDENTIALS, ["/destinations/#"], ["NOT_ALLOWED"], "a host or an address"),
    *each(CREDENTIALS, ["/fields/#/label"], ["DUPLICATE"], "each label once"),
    *each(CREDENTIALS, ["/fields/#/value"], ["NOT_ALLOWED", "TOO_LONG"], "of its field's type, which may be stored; bytes"),
    ("PATCH /skill/{id}", "/name", "TOO_LONG", "a folder's name has at most 240 bytes; the document counts characters"),
]

# What a run need not come upon, and why: (operation, place, code) of a rule.
RARE = {
    (CHANNEL, "/email/smtp/pass", "REQUIRED"): "needs a channel whose password a request before has set",
}

# Bodies that fit the document, and that chance seldom makes: (operation, body). Each is sent for every id that there is.
# What `run` has ids for is filled in.
EMAIL = {"imap": {"host": "a host"}, "smtp": {"host": "a host", "from": "nobody"}}
CALENDAR = {"calendar_whitelist": [{"id": "same"}, {"id": "same"}]}
WEBHOOK = {"outbound_url": "no address", "signature_header": "content-type"}
FIELDS = [
    {"label": "same", "type": "number", "value": "no number"},
    {"label": "same", "type": "text", "value": "\u00e9" * 65536},
]
NOTHING = 2**53 - 1
EXAMPLES = [
    (ANSWER, {"options": ["nobody's"], "text": "and a text"}),
    (ANSWER, {"options": ["a", "b"]}),
    (ANSWER, {}),
    ("POST /agent", {"name": "an example", "server_id": NOTHING, "image_id": NOTHING}),
    ("POST /agent", {"name": "an example", "image_id": None}),
    (NEW_CHANNEL, {"name": "an example", "transport": "CALENDAR", "agent_id": NOTHING}),
    *(
        (NEW_CHANNEL, {"name": "an example", "transport": transport, **more})
        for transport, more in [
            ("INTERNAL", {}),
            ("TELEGRAM", {}),
            ("TELEGRAM", {"webhook": {}, "email": {}, "code_host": {}, "drive": {}, "calendar": {}}),
            ("WEBHOOK", {"bot_token": "a token"}),
            ("WEBHOOK", {"webhook": WEBHOOK}),
            ("EMAIL", {}),
            ("EMAIL", {"email": EMAIL}),
            ("CODE_HOST", {"code_host": {"repos": ["../.."]}}),
            ("DRIVE", {}),
            ("CALENDAR", {"calendar": CALENDAR}),
        ]
    ),
    (CHANNEL, {"bot_token": "a token", "webhook": WEBHOOK, "email": EMAIL, "drive": {}, "calendar": CALENDAR}),
    (CHANNEL, {"webhook": None, "email": None, "code_host": None, "drive": None, "calendar": None}),
    (CHANNEL, {"webhook": {"outbound_url": None}}),
    (CHANNEL, {"code_host": {"repos": ["../.."]}}),
    (CHANNEL, {"direction": "BIDIRECTIONAL"}),
    (CHANNEL, {"alert_recipient_user_ids": [NOTHING], "notify_conversation_id": NOTHING}),
    ("POST /credential", {"name": "an example", "kind": "custom", "fields": FIELDS}),
    ("POST /credential", {"name": "an example", "kind": "custom", "fields": [], "destinations": ["no host"]}),
    ("PATCH /credential/{id}", {"fields": FIELDS}),
    ("PATCH /credential/{id}", {"destinations": ["no host"]}),
    ("PUT /credential/{id}/agents", {"agent_ids": [NOTHING]}),
    ("PATCH /skill/{id}", {"name": "\U0001f600" * 80}),
]
