"""What the OpenAI client for Python gets: a line for each way of asking."""

import json
import sys

import openai
from pydantic import BaseModel

url, question = sys.argv[1] + "/v1", sys.argv[2]
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]


def plain(note):
    return note if isinstance(note, dict) else note.model_dump()


def tell(client, how, text, annotations=None, citations=None, **more):
    line = {"client": client, "how": how, "text": text, "citations": citations, **more}
    if annotations is not None:
        notes = [plain(a)["url_citation"] for a in annotations]
        # Python counts characters, as the API does.
        line["annotations"] = [{"url": n["url"], "title": n["title"], "text": text[n["start_index"]:n["end_index"]]} for n in notes]
    print(json.dumps(line), flush=True)


client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
whole = client.chat.completions.create(model="ibid", messages=messages)
said = whole.choices[0].message
tell("openai (Python)", "whole", said.content, said.annotations, whole.citations, usage=whole.usage.total_tokens)

text, notes, citations, usage = "", [], None, None
for chunk in client.chat.completions.create(model="ibid", messages=messages, stream=True, stream_options={"include_usage": True}):
    citations = getattr(chunk, "citations", None) or citations
    usage = chunk.usage or usage
    for choice in chunk.choices:
        text += choice.delta.content or ""
        notes += getattr(choice.delta, "annotations", None) or []
tell("openai (Python)", "stream", text, notes, citations, usage=usage.total_tokens)

# The Responses API, whole and as a stream, which continues the first response.
def flat(response):
    return [{"url_citation": plain(a)} for a in response.output[0].content[0].annotations if a.type == "url_citation"]


first = client.responses.create(model="ibid", instructions="Be brief.", input=question)
tell("openai (Python)", "responses", first.output_text, flat(first))
with client.responses.stream(model="ibid", instructions="Be brief.", input=question, previous_response_id=first.id) as stream:
    text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    done = stream.get_final_response()
assert done.output_text == text and done.previous_response_id == first.id
tell("openai (Python)", "resp. stream", text, flat(done))
tell("openai (Python)", "completion", client.completions.create(model="ibid", prompt=question).choices[0].text)


class Lighting(BaseModel):
    when: str


parsed = client.responses.parse(model="ibid", input=question, text_format=Lighting)
assert parsed.output_parsed.when == "at dusk" and len(flat(parsed)) == 2, parsed
parsed = client.chat.completions.parse(model="ibid", messages=messages, response_format=Lighting).choices[0].message
assert parsed.parsed.when == "at dusk" and len(parsed.annotations) == 2, parsed
weather = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
offered = client.chat.completions.create(model="ibid", messages=messages, tools=[weather] * 36)
assert offered.choices[0].message.content == said.content, offered
found = client.vector_stores.search("default", query=question).data
assert "lantern" in found[0].content[0].text and found[0].file_id in [f.id for f in client.files.list()], found

# What its own helper makes of the stream.
with client.chat.completions.stream(model="ibid", messages=messages) as stream:
    for _ in stream:
        pass
    done = stream.get_final_completion()
tell("openai (Python)", "helper", done.choices[0].message.content)

# The rest of the API.
assert [m.id for m in client.models.list()] == ["ibid", "ibid/default"]
assert client.models.retrieve("ibid/default").id == "ibid/default"
for wrong, error in (({"model": "scripted"}, openai.NotFoundError), ({"n": 2}, openai.BadRequestError)):
    try:
        client.chat.completions.create(**{"model": "ibid", "messages": messages, **wrong})
        raise SystemExit(f"{wrong} was taken")
    except error as e:
        assert e.code in ("model_not_found", "unsupported_parameter"), e
