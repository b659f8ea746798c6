"""Prints what pydantic-ai gets."""

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from told import NEXT, QUESTION, SLOWLY, Told, url

told = Told("pydantic-ai", "pydantic-ai-slim")


class Lighting(BaseModel):
    """When a light is lit."""

    when: str


class Tide(BaseModel):
    height: int


async def streamed(agent):
    async with agent.run_stream(QUESTION) as run:
        return await run.get_output()


async def stopped(agent):
    async with agent.run_stream(SLOWLY) as run:
        async for _ in run.stream_text(delta=True):
            break


provider = OpenAIProvider(base_url=url, api_key="none")
for name, model in (("chat", OpenAIChatModel("ibid", provider=provider)), ("responses", OpenAIResponsesModel("ibid", provider=provider))):
    agent = Agent(model)

    @agent.tool_plain
    def weather() -> str:
        """The weather."""
        raise SystemExit("a tool is called")

    first = agent.run_sync(QUESTION)
    told.answer(name, first.output)
    told.answer(name + ", stream", asyncio.run(streamed(agent)))
    told.follow(name, agent.run_sync(NEXT, message_history=first.all_messages()).output)
    told.stop(name, lambda: asyncio.run(stopped(agent)))
    renamed = ToolOutput(Lighting, name="final_result_Lighting")
    for output in (Lighting, [Lighting, Tide], NativeOutput(Lighting), PromptedOutput(Lighting), [renamed, Tide]):
        for tools in ([], [weather]):
            told.json("output_type", Agent(model, tools=tools, output_type=output).run_sync(QUESTION).output.when)
    told.json("output_type", asyncio.run(streamed(Agent(model, tools=[weather], output_type=[Lighting, Tide]))).when)
    told.answer("output_type with str", Agent(model, tools=[weather], output_type=[str, Lighting]).run_sync(QUESTION).output)
