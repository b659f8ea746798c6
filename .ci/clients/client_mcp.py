"""What the MCP client for Python gets."""

import asyncio

from mcp import Client

from told import QUESTION, Told, root

told = Told("MCP SDK (Python)", "mcp")


async def ask():
    async with Client(root + "/mcp") as client:
        return await client.call_tool("ask", {"question": QUESTION})


reply = asyncio.run(ask())
links = [c for c in reply.content if c.type == "resource_link"]
found = reply.structured_content
assert len(links) == len(found["sources"]), reply
told.answer("tool ask over http", found["text"], sources=[s["document"] for s in found["sources"]])
