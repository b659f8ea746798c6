"""What frameworks on the OpenAI client and the MCP client get: a line for each way of asking."""

import asyncio
import json
import os
import subprocess
import sys

root, question, llm_home = sys.argv[1:]
url = root + "/v1"
os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")

import litellm
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from mcp import Client
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel


def tell(client, how, text, **more):
    print(json.dumps({"client": client, "how": how, "text": text, **more}), flush=True)


class Lighting(BaseModel):
    when: str


async def streamed(agent):
    async with agent.run_stream(question) as run:
        return await run.get_output()


for how, model in (("chat", OpenAIChatModel("ibid")), ("responses", OpenAIResponsesModel("ibid"))):
    agent = Agent(model)

    @agent.tool_plain
    def weather() -> str:
        """The weather."""
        raise SystemExit("a tool is called")

    tell("pydantic-ai", how, agent.run_sync(question).output)
    tell("pydantic-ai", how + " stream", asyncio.run(streamed(agent)))
    assert Agent(model, output_type=Lighting).run_sync(question).output.when == "at dusk"

like = OpenAILike(model="ibid", api_base=url, api_key="none", is_chat_model=True)
tell("LlamaIndex", "whole", like.complete(question).text)
tell("LlamaIndex", "stream", "".join(r.delta or "" for r in like.stream_complete(question)))
tell("LlamaIndex", "responses", OpenAIResponses(model="ibid", api_base=url, api_key="none", context_window=4096).complete(question).text)

messages = [{"role": "user", "content": question}]
said = litellm.completion(model="openai/ibid", messages=messages).choices[0].message
tell("litellm", "whole", said.content)
tell("litellm", "stream", "".join(c.choices[0].delta.content or "" for c in litellm.completion(model="openai/ibid", messages=messages, stream=True)))
tell("litellm", "responses", litellm.responses(model="openai/ibid", input=question).output[0].content[0].text)

os.makedirs(llm_home, exist_ok=True)
with open(f"{llm_home}/extra-openai-models.yaml", "w") as f:
    f.write(f"- model_id: ibid\n  model_name: ibid\n  api_base: {url}\n")
env = {**os.environ, "LLM_USER_PATH": llm_home}
tell("llm", "stream", subprocess.run(["llm", "-m", "ibid", question], env=env, capture_output=True, text=True, check=True).stdout.rstrip("\n"))


async def ask():
    async with Client(root + "/mcp") as client:
        return await client.call_tool("ask", {"question": question})


reply = asyncio.run(ask()).structured_content
tell("MCP SDK (Python)", "http", reply["text"], sources=[s["document"] for s in reply["sources"]])
