"""What LangChain gets: a line for each way of asking."""

import json
import sys

from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel

url, question = sys.argv[1] + "/v1", sys.argv[2]


def tell(how, text):
    # It hands on neither annotations nor citations of a chat: the links do.
    print(json.dumps({"client": "LangChain (Python)", "how": how, "text": text}), flush=True)


chat = ChatOpenAI(model="ibid", base_url=url, api_key="none", max_retries=0)
turns = [("system", "Be brief."), ("user", question)]
tell("whole", chat.invoke(turns).content)
tell("stream", "".join(chunk.content for chunk in chat.stream(turns)))

responses = ChatOpenAI(model="ibid", base_url=url, api_key="none", max_retries=0, use_responses_api=True)
tell("responses", responses.invoke(turns).text)
tell("completion", OpenAI(model="ibid", base_url=url, api_key="none", max_retries=0).invoke(question))


class Lighting(BaseModel):
    when: str


for method in ("json_schema", "function_calling"):
    assert chat.with_structured_output(Lighting, method=method).invoke(question).when == "at dusk"
assert chat.bind_tools([Lighting]).invoke(turns).content == chat.invoke(turns).content
