"""tools.py URL TOKEN [NAME ARGUMENTS]...: the same as tools.mjs with the official library for Python: connects to /mcp, and
prints a line for what it gets: the server, the tools, and the result of each call. The library checks every message
and every structured result against its schema."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def show(value):
    print(json.dumps(value))


async def main(url, token, *calls):
    # No proxy of the environment: the service is on this machine.
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            server = client.server_info
            show({"server": {"name": server.name, "version": server.version}, "instructions": client.instructions})
            listed = await client.list_tools()
            show(listed.model_dump(mode="json", by_alias=True, exclude_none=True))
            for name, arguments in zip(calls[::2], calls[1::2]):
                try:
                    result = await client.call_tool(name, json.loads(arguments))
                    show(result.model_dump(mode="json", by_alias=True, exclude_none=True))
                except Exception as error:
                    show({"thrown": str(error), "code": getattr(getattr(error, "error", None), "code", None)})


asyncio.run(main(*sys.argv[1:]))
