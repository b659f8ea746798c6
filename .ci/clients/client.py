"""Prints what the OpenAI client for Python gets."""

import openai
from pydantic import BaseModel

from told import NEXT, QUESTION, SLOWLY, Told, url

told = Told("openai (Python)", "openai")
client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]


def plain(note):
    return note if isinstance(note, dict) else note.model_dump()


whole = client.chat.completions.create(model="ibid", messages=messages)
said = whole.choices[0].message
assert whole.usage.total_tokens > 0
told.answer("chat", said.content, [plain(a)["url_citation"] for a in said.annotations], whole.citations)

text, notes, citations = "", [], None
for chunk in client.chat.completions.create(model="ibid", messages=messages, stream=True, stream_options={"include_usage": True}):
    citations = getattr(chunk, "citations", None) or citations
    for choice in chunk.choices:
        text += choice.delta.content or ""
        notes += [plain(a)["url_citation"] for a in getattr(choice.delta, "annotations", None) or []]
assert chunk.usage.total_tokens > 0
told.answer("chat, stream", text, notes, citations)
with client.chat.completions.stream(model="ibid", messages=messages) as stream:
    for _ in stream:
        pass
    told.answer("chat, stream helper", stream.get_final_completion().choices[0].message.content)
turns = [*messages, {"role": "assistant", "content": said.content}, {"role": "user", "content": NEXT}]
told.follow("chat", client.chat.completions.create(model="ibid", messages=turns).choices[0].message.content)


def leave(stream):
    next(iter(stream))
    stream.close()


told.stop("chat", lambda: leave(client.chat.completions.create(model="ibid", messages=[{"role": "user", "content": SLOWLY}], stream=True)))


# The Responses API, whole and as a stream. A response can continue an earlier one, even one that was cut.
def flat(response):
    return [plain(a) for a in response.output[0].content[0].annotations if a.type == "url_citation"]


first = client.responses.create(model="ibid", instructions="Be brief.", input=QUESTION)
told.answer("responses", first.output_text, flat(first))
assert {a.file_id for a in first.output[0].content[0].annotations if a.type == "file_citation"} <= {f.id for f in client.files.list()}
with client.responses.stream(model="ibid", instructions="Be brief.", input=QUESTION) as stream:
    text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    done = stream.get_final_response()
assert done.output_text == text
told.answer("responses, stream", text, flat(done))
cut = client.responses.create(model="ibid", input=QUESTION, max_output_tokens=2)
assert cut.status == "incomplete", cut
for before in (first, cut):
    told.follow("previous_response_id", client.responses.create(model="ibid", input=NEXT, previous_response_id=before.id).output_text)
told.stop("responses", lambda: leave(client.responses.create(model="ibid", input=SLOWLY, stream=True)))
told.answer("completions", client.completions.create(model="ibid", prompt=QUESTION).choices[0].text)


class Lighting(BaseModel):
    when: str


parsed = client.responses.parse(model="ibid", input=QUESTION, text_format=Lighting)
assert len(flat(parsed)) == 2, parsed
told.json("responses.parse", parsed.output_parsed.when)
parsed = client.chat.completions.parse(model="ibid", messages=messages, response_format=Lighting).choices[0].message
assert len(parsed.annotations) == 2, parsed
told.json("chat.completions.parse", parsed.parsed.when)

# The rest of the API.
weather = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
offered = client.chat.completions.create(model="ibid", messages=messages, tools=[weather] * 36)
assert offered.choices[0].message.content == said.content, offered
found = client.vector_stores.search("default", query=QUESTION).data
assert "lantern" in found[0].content[0].text and found[0].file_id in [f.id for f in client.files.list()], found
assert [m.id for m in client.models.list()] == ["ibid", "ibid/default"]
assert client.models.retrieve("ibid/default").id == "ibid/default"
for wrong, error in (({"model": "scripted"}, openai.NotFoundError), ({"n": 2}, openai.BadRequestError),
                     ({"tools": [weather], "tool_choice": {"type": "function", "function": {"name": "tide"}}}, openai.BadRequestError)):
    try:
        client.chat.completions.create(**{"model": "ibid", "messages": messages, **wrong})
        raise SystemExit(f"{wrong} was taken")
    except error as e:
        assert e.code in ("model_not_found", "unsupported_parameter", "invalid_value"), e
