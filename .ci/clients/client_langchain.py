"""Prints what LangChain gets: links in the text, since it drops the annotations and citations of a chat."""

from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel

from told import NEXT, QUESTION, SLOWLY, Told, first_of, url

told = Told("LangChain (Python)", "langchain-openai")
chat = ChatOpenAI(model="ibid", base_url=url, api_key="none", max_retries=0)
responses = ChatOpenAI(model="ibid", base_url=url, api_key="none", max_retries=0, use_responses_api=True)
turns = [("system", "Be brief."), ("user", QUESTION)]
for name, model in (("chat", chat), ("responses", responses)):
    said = model.invoke(turns)
    told.answer(name, said.text)
    told.answer(name + ", stream", "".join(chunk.text for chunk in model.stream(turns)))
    told.follow(name, model.invoke([*turns, said, ("user", NEXT)]).text)
    told.stop(name, lambda: first_of(c.text for c in model.stream(SLOWLY)))
told.answer("completions", OpenAI(model="ibid", base_url=url, api_key="none", max_retries=0).invoke(QUESTION))


class Lighting(BaseModel):
    """When a light is lit."""

    when: str


def weather() -> str:
    """The weather."""
    raise SystemExit("a tool is called")


for method in ("json_schema", "function_calling"):
    told.json("with_structured_output", chat.with_structured_output(Lighting, method=method).invoke(QUESTION).when)
agent = create_agent(chat, tools=[weather])
told.answer("create_agent", agent.invoke({"messages": [("user", QUESTION)]})["messages"][-1].text)
capable = ChatOpenAI(model="ibid", base_url=url, api_key="none", max_retries=0, profile={"structured_output": True})
for model, tools, form in ((chat, [], Lighting), (capable, [weather], Lighting), (chat, [weather], ProviderStrategy(Lighting))):
    agent = create_agent(model, tools=tools, response_format=form)
    told.json("create_agent", agent.invoke({"messages": [("user", QUESTION)]})["structured_response"].when)
