"""What a request that fits the OpenAPI document may be refused for with 422, and why the document can't say it.

`run` hands this to Schemathesis as a check: a 422 to a fitting request has to name a place and a code that stand here for
its operation. Anything else is a failure. The list only shrinks.
"""

import re

import schemathesis

NUMBER = r"/\d+"

# What is wrong where: (operation, place, code, why it is not in the document).
RULES = [
    (
        "GET /agent/{agent_id}/conversation/{conversation_id}/message",
        "after_seq",
        "NOT_ALLOWED",
        "one cursor or the other: OpenAPI has no conditions between parameters",
    ),
    # What may be answered depends on the approval: which options its question has, whether several, whether text.
    ("PATCH /approval/{id}/answer", f"/options({NUMBER})?", "NOT_ALLOWED", "the question's own options"),
    ("PATCH /approval/{id}/answer", "/options", "REQUIRED", "an action needs an option, a question one or a text"),
    ("PATCH /approval/{id}/answer", "/text", "NOT_ALLOWED", "the question takes options only"),
    # An id in a body names nothing: 404 is for the record that the path names.
    ("POST /agent", "/(server|image)_id", "NOT_FOUND", "the server and the image exist"),
    ("POST /agent", "/image_id", "REQUIRED", "the organization has a default image, or has none"),
    ("POST /channel", "/agent_id", "NOT_FOUND", "the agent exists"),
    ("PATCH /channel/{id}", f"/alert_recipient_user_ids{NUMBER}", "NOT_FOUND", "members exist"),
    ("PATCH /channel/{id}", "/notify_conversation_id", "NOT_FOUND", "the conversation exists"),
    ("PUT /credential/{id}/agents", f"/agent_ids{NUMBER}", "NOT_FOUND", "the agents exist"),
    # Each transport has keys of its own; which one an edited channel has is not in the request.
    *(
        rule
        for operation in ("POST /channel", "PATCH /channel/{id}")
        for rule in [
            (operation, "/(webhook|email|code_host|drive|calendar)", "(NOT_ALLOWED|WRONG_TYPE)", "another transport's"),
            (operation, "/bot_token", "(NOT_ALLOWED|REQUIRED)", "a bot's, and needed there"),
            (operation, "/webhook/outbound_url", "(NOT_ALLOWED|REQUIRED)", "an address that can be reached; where it sends"),
            (operation, "/webhook/signature_header", "NOT_ALLOWED", "a header's name, and none that means something else"),
            (operation, "/email/(imap|smtp)/.*", "(NOT_ALLOWED|REQUIRED)", "hosts; what its direction needs"),
            (operation, "/code_host/installation_id", "REQUIRED", "what its transport needs"),
            (operation, f"/code_host/repos{NUMBER}", "NOT_ALLOWED", "owner/name, neither of them a dot or two"),
            (operation, "/drive/folder_id", "REQUIRED", "what its transport needs"),
            (operation, f"/calendar/calendar_whitelist{NUMBER}/id", "NOT_ALLOWED", "each calendar once"),
        ]
    ),
    ("POST /channel", "/transport", "NOT_ALLOWED", "INTERNAL is a transport, and never created by hand"),
    # No pattern says exactly what is a host or an address, nor what is JSON; JSON Schema knows no keys of lists.
    *(
        rule
        for operation in ("POST /credential", "PATCH /credential/{id}")
        for rule in [
            (operation, f"/destinations{NUMBER}", "NOT_ALLOWED", "a host or an address"),
            (operation, f"/fields{NUMBER}/label", "DUPLICATE", "each label once"),
            (operation, f"/fields{NUMBER}/value", "(NOT_ALLOWED|TOO_LONG)", "of its field's type, which may be stored; bytes"),
        ]
    ),
    ("PATCH /skill/{id}", "/name", "TOO_LONG", "a folder's name has at most 240 bytes; the document counts characters"),
]


def problem_errors(response):
    body = response.json()
    return [(error.get("pointer") or error.get("parameter") or "", error["code"]) for error in body.get("errors", [])]


def is_known(label, place, code):
    return any(
        label == operation and re.fullmatch(pattern, place) and re.fullmatch(wanted, code) for operation, pattern, wanted, _ in RULES
    )


@schemathesis.check
def only_known_rules_refuse_what_fits(ctx, response, case):
    if response.status_code != 422 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    label = case.operation.label.replace("/v1/org/{org_id}", "")
    errors = problem_errors(response)
    unknown = [error for error in errors if not is_known(label, *error)]
    assert errors and not unknown, f"{label} refuses what fits: {unknown or response.text}"
