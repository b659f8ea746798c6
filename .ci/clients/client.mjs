// What the OpenAI client for JavaScript and the AI SDK get: a line for each way
// of asking.
import OpenAI from 'openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateText, streamText } from 'ai';
import assert from 'node:assert/strict';

const [url, question] = [process.argv[2] + '/v1', process.argv[3]];
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: question }];

function tell(client, how, text, annotations, citations) {
  const letters = Array.from(text); // characters, not units of UTF-16
  console.log(JSON.stringify({
    client, how, text, citations,
    annotations: annotations?.map(({ url_citation: n }) => ({ url: n.url, title: n.title, text: letters.slice(n.start_index, n.end_index).join('') })),
  }));
}

const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const whole = await client.chat.completions.create({ model: 'ibid', messages });
const said = whole.choices[0].message;
tell('openai (JavaScript)', 'whole', said.content, said.annotations, whole.citations);

let text = '', notes = [], citations;
for await (const chunk of await client.chat.completions.create({ model: 'ibid', messages, stream: true, stream_options: { include_usage: true } })) {
  citations = chunk.citations ?? citations;
  for (const choice of chunk.choices) {
    text += choice.delta.content ?? '';
    notes.push(...(choice.delta.annotations ?? []));
  }
}
tell('openai (JavaScript)', 'stream', text, notes, citations);

const runner = client.chat.completions.stream({ model: 'ibid', messages });
tell('openai (JavaScript)', 'helper', await runner.finalContent());

const ibid = createOpenAICompatible({ name: 'ibid', baseURL: url, apiKey: 'none', includeUsage: true });
const generated = await generateText({ model: ibid('ibid'), system: 'Be brief.', prompt: question, maxRetries: 0 });
assert.equal(generated.finishReason, 'stop');
tell('AI SDK', 'whole', generated.text, undefined, generated.response.body?.citations);
const streamed = streamText({ model: ibid('ibid'), system: 'Be brief.', prompt: question, maxRetries: 0 });
let parts = '';
for await (const part of streamed.textStream) parts += part;
assert.equal(await streamed.finishReason, 'stop');
assert((await streamed.usage).totalTokens > 0);
tell('AI SDK', 'stream', parts);

const { embedding } = await embed({ model: ibid.textEmbeddingModel('ibid'), value: 'a lantern', maxRetries: 0 });
assert(embedding.length > 8);
await assert.rejects(client.chat.completions.create({ model: 'none', messages }), { status: 404, code: 'model_not_found' });
