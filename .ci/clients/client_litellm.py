"""Prints what litellm gets."""

import litellm
from pydantic import BaseModel

from told import NEXT, QUESTION, SLOWLY, Told, url

told = Told("litellm", "litellm")
to = {"model": "openai/ibid", "api_base": url, "api_key": "none", "num_retries": 0}
asked = [{"role": "user", "content": QUESTION}]
said = litellm.completion(messages=asked, **to).choices[0].message
told.answer("chat", said.content)
told.answer("chat, stream", "".join(c.choices[0].delta.content or "" for c in litellm.completion(messages=asked, stream=True, **to)))
told.follow("chat", litellm.completion(messages=[*asked, said, {"role": "user", "content": NEXT}], **to).choices[0].message.content)
first = litellm.responses(input=QUESTION, **to)
told.answer("responses", first.output[0].content[0].text)
told.follow("responses", litellm.responses(input=NEXT, previous_response_id=first.id, **to).output[0].content[0].text)


def leave():
    stream = litellm.completion(messages=[{"role": "user", "content": SLOWLY}], stream=True, **to)
    next(stream)
    stream.completion_stream.close()  # the stream of the OpenAI client


told.stop("chat", leave)


class Lighting(BaseModel):
    when: str


filled = litellm.completion(messages=asked, response_format=Lighting, **to).choices[0].message.content
told.json("response_format", Lighting.model_validate_json(filled).when)
