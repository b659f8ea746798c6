"""Prints what the MCP client for Python gets."""

import asyncio

from mcp import Client
from mcp.types import ResourceTemplateReference

from told import QUESTION, Told, root

told = Told("MCP SDK (Python)", "mcp")


async def ask():
    async with Client(root + "/mcp") as client:
        listed = await client.call_tool("list_documents", {"filter": {"format": "markdown"}})
        assert len(listed.structured_content["documents"]) == 4 and listed.structured_content["collections"], listed
        document = listed.structured_content["documents"][0]["id"]
        summary = await client.call_tool("summarize", {"document": document})
        assert not summary.is_error and summary.content[0].text, summary
        prompt = await client.get_prompt("answer", {"question": QUESTION})
        assert QUESTION in prompt.messages[0].content.text, prompt
        template = (await client.list_resource_templates()).resource_templates[0].uri_template
        completed = await client.complete(ResourceTemplateReference(uri=template), {"name": "id", "value": "library/lan"})
        assert len(completed.completion.values) == 1, completed
        reply = await client.call_tool("ask", {"question": QUESTION})
        for source in reply.structured_content["sources"]:
            read = await client.read_resource(source["resource"])
            assert source["passages"][0]["quote"] in read.contents[0].text, source
        return reply


reply = asyncio.run(ask())
links = [c for c in reply.content if c.type == "resource_link"]
found = reply.structured_content
assert len(links) == len(found["sources"]), reply
told.answer("tool ask over http", found["text"], sources=[s["document"] for s in found["sources"]])
