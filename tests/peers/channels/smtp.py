"""smtp.py HOST PORT CERTIFICATE KEY starttls|tls|open: a mail server (aiosmtpd) that takes mail over TLS alone, from the user
agent, whose password is "secret" and whose access token is "right"; or `open`: without TLS, from everybody. It prints
`listening PORT`, and a line of JSON for each mail: its envelope, and what Python's own parser reads in it."""

import asyncio
import base64
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

NO = AuthResult(success=False, handled=False)


def show(**facts):
    print(json.dumps(facts), flush=True)


def text(mail, kind):
    body = mail.get_body((kind,))
    return None if body is None else body.get_content()


class Handler:
    async def auth_XOAUTH2(self, server, arguments):
        user, token = base64.b64decode(arguments[1]).decode().split("\x01")[:2]
        if (user, token) == ("user=agent", "auth=Bearer right"):
            return AuthResult(success=True, auth_data="agent")
        # As Google and Microsoft do: first why, and after an empty answer, no.
        await server.challenge_auth('{"status":"401","schemes":"bearer"}')
        return NO

    async def handle_DATA(self, server, session, envelope):
        tls = server.transport.get_extra_info("ssl_object")
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        show(
            sender=envelope.mail_from,
            to=envelope.rcpt_tos,
            by=session.auth_data,
            tls=None if tls is None else tls.version(),
            headers={name.lower(): str(value) for name, value in mail.items()},
            plain=text(mail, "plain"),
            html=text(mail, "html"),
        )
        return "250 taken"


def check(server, session, envelope, mechanism, login):
    known = mechanism in ("PLAIN", "LOGIN") and (login.login, login.password) == (b"agent", b"secret")
    return AuthResult(success=known, handled=known, auth_data="agent" if known else None)


async def main(host, port, certificate, key, mode):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if mode != "open":
        tls.load_cert_chain(certificate, key)
    begins = mode == "tls"

    def server():
        if mode == "open":
            return SMTP(Handler(), hostname=host)
        options = {} if begins else {"tls_context": tls, "require_starttls": True}
        return SMTP(Handler(), hostname=host, authenticator=check, auth_required=True, auth_require_tls=not begins, **options)

    listener = await asyncio.get_running_loop().create_server(server, host, int(port), ssl=tls if begins else None)
    print("listening", listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


asyncio.run(main(*sys.argv[1:]))
