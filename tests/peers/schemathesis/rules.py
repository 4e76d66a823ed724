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
AGENT = "PATCH /agent/{id}"
NEW_MCP, MCP = "POST /mcp", "PATCH /mcp/{id}"
MESSAGE = "POST /conversation/{conversation_id}/message"
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
    *each(CHANNELS, ["/email/authserv_id"], ["NOT_ALLOWED"], "a server's name"),
    ("POST /channel/{id}/whitelist", "/origin_id", "NOT_ALLOWED", "in a mailbox's list, an address"),
    *each(
        CHANNELS,
        ["/email/imap/host", "/email/imap/user", "/email/imap/pass", "/email/smtp/host", "/email/smtp/from"],
        ["REQUIRED"],
        "what its direction needs",
    ),
    (CHANNEL, "/email/smtp/pass", "REQUIRED", "a password is kept for the host that it was given for"),
    *each(CHANNELS, ["/code_host/installation_id"], ["REQUIRED"], "what its transport needs"),
    *each(CHANNELS, ["/code_host/host"], ["NOT_ALLOWED"], "one that the operator names; a channel keeps it"),
    *each(CHANNELS, ["/code_host/repos"], ["REQUIRED"], "what other hosts than GitHub need"),
    (CHANNEL, "/is_active", "NOT_ALLOWED", "a channel at GitHub needs an account first"),
    *each(CHANNELS, ["/code_host/repos/#"], ["NOT_ALLOWED"], "owner/name, neither of them a dot or two"),
    (NEW_CHANNEL, "/drive/folder_id", "REQUIRED", "what its transport needs"),
    *each(CHANNELS, ["/drive/user", "/drive/pass"], ["REQUIRED"], "what a WebDAV server needs"),
    *each(CHANNELS, ["/drive/url"], ["NOT_ALLOWED"], "http or https, without a user"),
    *each(CHANNELS, ["/calendar/calendar_whitelist/#/id"], ["NOT_ALLOWED"], "each calendar once"),
    *each(CHANNELS, ["/calendar/url"], ["NOT_ALLOWED"], "an address"),
    *each(CHANNELS, ["/calendar/user", "/calendar/pass"], ["REQUIRED"], "a server's account, for the address that it was given for"),
    # No pattern says exactly what is a host or an address, nor what is JSON; JSON Schema knows no keys of lists.
    *each(CREDENTIALS, ["/destinations/#"], ["NOT_ALLOWED"], "a host or an address"),
    *each(CREDENTIALS, ["/fields/#/label"], ["DUPLICATE"], "each label once"),
    *each(CREDENTIALS, ["/fields/#/value"], ["NOT_ALLOWED", "TOO_LONG"], "of its field's type, which may be stored; bytes"),
    *each(
        ["POST /skill", "PATCH /skill/{id}"],
        ["/name"],
        ["TOO_LONG"],
        "a folder's name has at most 240 bytes; the document counts characters",
    ),
    *each(["PUT /mcp/{id}/agents", "PUT /skill/{id}/agents"], ["/agent_ids/#"], ["NOT_FOUND"], "the agents exist"),
    ("POST /conversation", "/agent_id", "NOT_FOUND", "the agent exists"),
    ("PATCH /conversation/{id}", "/status", "NOT_ALLOWED", "PENDING is a status, and never set by hand"),
    (MESSAGE, "/attachment_ids/#", "NOT_FOUND", "files that the caller has uploaded and not posted"),
    # A setting of an agent may need another one, which the agent may have or not.
    *each([AGENT], ["/server_id", "/image_id"], ["NOT_FOUND"], "the server and the image exist"),
    *each(
        [AGENT],
        ["/timezone", "/backup_cron", "/language", "/model_credential_base_url"],
        ["NOT_ALLOWED"],
        "a zone, a schedule, a language, an address",
    ),
    (AGENT, "/cpu_override", "TOO_SMALL", "a hundredth of a core; 0 is not one"),
    (AGENT, "/approval_ask_threshold", "TOO_LARGE", "not above the threshold that blocks"),
    *each(
        [AGENT],
        [
            "/backup_cron",
            "/cost_guard_tokens_per_hour",
            "/cost_guard_action",
            "/session_reset_tokens",
            "/model_credential",
        ],
        ["REQUIRED"],
        "what another setting needs",
    ),
    # An MCP server is a program or an address; which one an edited one is, is not in the request.
    *each([NEW_MCP, MCP], ["/command", "/url"], ["NOT_ALLOWED", "REQUIRED"], "what its transport takes; an address"),
    *each([NEW_MCP, MCP], ["/args"], ["NOT_ALLOWED"], "a program's"),
    *each([NEW_MCP, MCP], ["/auth/#"], ["DUPLICATE"], "each name once"),
    *each([NEW_MCP, MCP], ["/name"], ["NOT_ALLOWED"], "`muster` is Muster's own"),
]

# What a run need not come upon, and why: (operation, place, code) of a rule.
RARE = {
    (CHANNEL, "/email/smtp/pass", "REQUIRED"): "needs a channel whose password a request before has set",
    (CHANNEL, "/code_host/installation_id", "REQUIRED"): "needs a channel at GitHub",
    (CHANNEL, "/code_host/repos", "REQUIRED"): "needs a channel at a host that the operator names",
    (CHANNEL, "/is_active", "NOT_ALLOWED"): "needs a channel at GitHub that a request before has not switched off",
}

# Bodies that fit the document, and that chance seldom makes: (operation, body). Each is sent for every id that there is.
# What `run` has ids for is filled in.
EMAIL = {"imap": {"host": "a host"}, "smtp": {"host": "a host", "from": "nobody"}, "authserv_id": "no name"}
CALENDAR = {"url": "no address", "calendar_whitelist": [{"id": "same"}, {"id": "same"}]}
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
            ("CODE_HOST", {"code_host": {"host": "not.the.operators"}}),
            ("DRIVE", {}),
            ("DRIVE", {"drive": {"folder_id": "a", "url": "https://dav.example.org"}}),
            ("DRIVE", {"drive": {"folder_id": "a", "url": "ftp://dav.example.org"}}),
            ("CALENDAR", {"calendar": CALENDAR}),
        ]
    ),
    (CHANNEL, {"bot_token": "a token", "webhook": WEBHOOK, "email": EMAIL, "drive": {}, "calendar": CALENDAR}),
    (CHANNEL, {"webhook": None, "email": None, "code_host": None, "drive": None, "calendar": None}),
    (CHANNEL, {"webhook": {"outbound_url": None}}),
    (CHANNEL, {"code_host": {"repos": ["../.."]}}),
    (CHANNEL, {"code_host": {"host": "not.the.operators"}}),
    (CHANNEL, {"drive": {"url": "ftp://dav.example.org", "user": None}, "calendar": {"user": None}}),
    ("POST /channel/{id}/whitelist", {"origin_id": "no address"}),
    (CHANNEL, {"is_active": True}),
    (CHANNEL, {"direction": "BIDIRECTIONAL"}),
    (CHANNEL, {"alert_recipient_user_ids": [NOTHING], "notify_conversation_id": NOTHING}),
    ("POST /credential", {"name": "an example", "kind": "custom", "fields": FIELDS}),
    ("POST /credential", {"name": "an example", "kind": "custom", "fields": [], "destinations": ["no host"]}),
    ("PATCH /credential/{id}", {"fields": FIELDS}),
    ("PATCH /credential/{id}", {"destinations": ["no host"]}),
    ("PUT /credential/{id}/agents", {"agent_ids": [NOTHING]}),
    ("PATCH /skill/{id}", {"name": "\U0001f600" * 80}),
    ("POST /skill", {"name": "\U0001f600" * 80, "content": ""}),
    ("PUT /mcp/{id}/agents", {"agent_ids": [NOTHING]}),
    ("PUT /skill/{id}/agents", {"agent_ids": [NOTHING]}),
    ("POST /conversation", {"agent_id": NOTHING}),
    ("PATCH /conversation/{id}", {"status": "PENDING"}),
    (MESSAGE, {"text": "a file", "attachment_ids": [NOTHING]}),
    (AGENT, {"server_id": NOTHING, "image_id": NOTHING}),
    (AGENT, {"timezone": "nowhere", "backup_cron": "never", "language": "no language", "model_credential_base_url": "no address"}),
    (AGENT, {"cpu_override": 0, "model_credential": None}),
    (AGENT, {"approval_ask_threshold": 90, "approval_block_threshold": 10}),
    (AGENT, {"backup_schedule": "CRON", "backup_cron": None}),
    (AGENT, {"cost_guard_mode": "CUSTOM", "cost_guard_tokens_per_hour": None, "cost_guard_action": None}),
    (AGENT, {"session_reset_mode": "CUSTOM", "session_reset_tokens": None}),
    (AGENT, {"credential_choice": "OWN", "model_credential": None}),
    (NEW_MCP, {"name": "muster", "transport": "STDIO", "auth": ["same", "same"]}),
    (NEW_MCP, {"name": "an example", "transport": "STDIO", "url": "https://mcp.example"}),
    (NEW_MCP, {"name": "an example", "transport": "HTTP", "command": "a program", "args": ["x"]}),
    (MCP, {"name": "muster", "transport": "STDIO", "command": None, "args": [], "auth": ["same", "same"]}),
    (MCP, {"transport": "STDIO", "url": "https://mcp.example"}),
    (MCP, {"transport": "HTTP", "command": "a program", "args": ["x"], "url": None}),
    (MCP, {"transport": "HTTP", "command": None, "args": [], "url": "no address"}),
]
