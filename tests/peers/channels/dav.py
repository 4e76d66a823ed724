"""dav.py FOLDER: a WebDAV server (WsgiDAV) for the user agent, whose password is "secret". It prints `listening PORT`."""

import sys

from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp

app = WsgiDAVApp(
    {
        "provider_mapping": {"/dav": sys.argv[1]},
        "simple_dc": {"user_mapping": {"*": {"agent": {"password": "secret"}}}},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "verbose": 0,
        "logging": {"enable": False},
    }
)
server = wsgi.Server(("127.0.0.1", 0), app)
server.prepare()
print("listening", server.bind_addr[1], flush=True)
server.serve()
