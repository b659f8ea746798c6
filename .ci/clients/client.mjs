// What the OpenAI client for JavaScript and the AI SDK get: a line for each way
// of asking.
import OpenAI from 'openai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, Output, streamText, tool } from 'ai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
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

const flat = (response) => response.output[0].content[0].annotations.filter((a) => a.type === 'url_citation').map((a) => ({ url_citation: a }));
const responded = await client.responses.create({ model: 'ibid', input: question });
tell('openai (JavaScript)', 'responses', responded.output_text, flat(responded));
const events = client.responses.stream({ model: 'ibid', input: question, previous_response_id: responded.id });
let streamedText = '';
for await (const e of events) if (e.type === 'response.output_text.delta') streamedText += e.delta;
tell('openai (JavaScript)', 'resp. stream', streamedText, flat(await events.finalResponse()));
const Lighting = z.object({ when: z.string() });
const format = zodTextFormat(Lighting, 'lighting');
assert.deepEqual((await client.responses.parse({ model: 'ibid', input: question, text: { format } })).output_parsed, { when: 'at dusk' });
const parsed = await client.chat.completions.parse({ model: 'ibid', messages, response_format: zodResponseFormat(Lighting, 'lighting') });
assert.deepEqual(parsed.choices[0].message.parsed, { when: 'at dusk' });

// The default provider of the AI SDK asks /v1/responses; a later turn refers to the earlier message.
const openai = createOpenAI({ baseURL: url, apiKey: 'none' });
const weather = tool({ description: 'weather', inputSchema: z.object({}), execute: async () => 'rain' });
for (const [name, model] of [['responses', openai('ibid')], ['chat', openai.chat('ibid')]]) {
  const asked = await generateText({ model, prompt: question, maxRetries: 0, tools: { weather } });
  assert(asked.sources.some((s) => s.sourceType === 'url'));
  tell('AI SDK, openai', name, asked.text);
  const messages = [{ role: 'user', content: question }, ...asked.response.messages, { role: 'user', content: question }];
  const later = streamText({ model, messages, maxRetries: 0 });
  let all = '';
  for await (const part of later.textStream) all += part;
  tell('AI SDK, openai', name + ' turn', all);
  assert.deepEqual((await generateText({ model, prompt: question, output: Output.object({ schema: Lighting }) })).output, { when: 'at dusk' });
}
const chain = new ChatOpenAI({ model: 'ibid', apiKey: 'none', configuration: { baseURL: url }, maxRetries: 0 });
tell('LangChain (JavaScript)', 'whole', (await chain.invoke(question)).content);
let pieces = '';
for await (const piece of await chain.stream(question)) pieces += piece.content;
tell('LangChain (JavaScript)', 'stream', pieces);
assert.deepEqual(await chain.withStructuredOutput(Lighting).invoke(question), { when: 'at dusk' });

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

await assert.rejects(client.chat.completions.create({ model: 'none', messages }), { status: 404, code: 'model_not_found' });
