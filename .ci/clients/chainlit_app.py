"""The chat page of Chainlit that web/CLIENTS.md shows."""

import chainlit as cl
from openai import AsyncOpenAI

client = AsyncOpenAI()


@cl.on_message
async def answer(_):
    reply = cl.Message("")
    async for chunk in await client.chat.completions.create(model="ibid", messages=cl.chat_context.to_openai(), stream=True):
        if chunk.choices:
            await reply.stream_token(chunk.choices[0].delta.content or "")
    await reply.update()
