// Prints what the OpenAI client for JavaScript, the AI SDK and LangChain get.
import OpenAI from 'openai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, providerStrategy, tool as langchainTool } from 'langchain';
import { generateText, Output, streamText, tool } from 'ai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import assert from 'node:assert/strict';
import { collect, NEXT, QUESTION, SLOWLY, Told, url } from './told.mjs';

const Lighting = z.object({ when: z.string() });
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: QUESTION }];
const slowly = [{ role: 'user', content: SLOWLY }];

// openai
{
  const told = Told('openai (JavaScript)', 'openai');
  const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  const whole = await client.chat.completions.create({ model: 'ibid', messages });
  const said = whole.choices[0].message;
  told.answer('chat', said.content, said.annotations.map((a) => a.url_citation), { citations: whole.citations });
  let text = '', notes = [], citations;
  const asked = { model: 'ibid', messages, stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await client.chat.completions.create(asked)) {
    citations = chunk.citations ?? citations;
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? '';
      notes.push(...(choice.delta.annotations ?? []).map((a) => a.url_citation));
    }
  }
  told.answer('chat, stream', text, notes, { citations });
  told.answer('chat, stream helper', await client.chat.completions.stream({ model: 'ibid', messages }).finalContent());
  const later = await client.chat.completions.create({ model: 'ibid', messages: [...messages, said, { role: 'user', content: NEXT }] });
  told.follow('chat', later.choices[0].message.content);
  await told.stop('chat', async () => {
    const stream = await client.chat.completions.create({ model: 'ibid', messages: slowly, stream: true });
    for await (const _ of stream) break;
  });

  const flat = (response) => response.output[0].content[0].annotations.filter((a) => a.type === 'url_citation');
  const first = await client.responses.create({ model: 'ibid', input: QUESTION });
  told.answer('responses', first.output_text, flat(first));
  const events = client.responses.stream({ model: 'ibid', input: QUESTION });
  const streamed = await collect(events, (e) => (e.type === 'response.output_text.delta' ? e.delta : ''));
  told.answer('responses, stream', streamed, flat(await events.finalResponse()));
  const next = await client.responses.create({ model: 'ibid', input: NEXT, previous_response_id: first.id });
  told.follow('previous_response_id', next.output_text);
  await told.stop('responses', async () => {
    for await (const _ of await client.responses.create({ model: 'ibid', input: SLOWLY, stream: true })) break;
  });
  const format = zodTextFormat(Lighting, 'lighting');
  told.json('responses.parse', (await client.responses.parse({ model: 'ibid', input: QUESTION, text: { format } })).output_parsed);
  const lighting = zodResponseFormat(Lighting, 'lighting');
  const parsed = await client.chat.completions.parse({ model: 'ibid', messages, response_format: lighting });
  told.json('chat.completions.parse', parsed.choices[0].message.parsed);
  await assert.rejects(client.chat.completions.create({ model: 'none', messages }), { status: 404, code: 'model_not_found' });
}

// The AI SDK: the default model of its provider asks /v1/responses, where a later turn refers to the earlier message.
const openai = createOpenAI({ baseURL: url, apiKey: 'none' });
const compatible = createOpenAICompatible({
  name: 'ibid', baseURL: url, apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true,
});
const weather = tool({ description: 'weather', inputSchema: z.object({}), execute: async () => assert.fail('a tool is called') });
for (const [name, how, model] of [['@ai-sdk/openai', 'openai()', openai('ibid')], ['@ai-sdk/openai', 'openai.chat()', openai.chat('ibid')],
  ['@ai-sdk/openai-compatible', 'ibid()', compatible('ibid')]]) {
  const told = Told(`AI SDK, \`${name}\``, name);
  const asked = await generateText({ model, prompt: QUESTION, maxRetries: 0, tools: { weather } });
  assert.equal(asked.finishReason, 'stop');
  const sources = asked.sources.filter((s) => s.sourceType === 'url').map((s) => s.url);
  assert(sources.length > 1 || name.endsWith('compatible'), JSON.stringify(asked.sources));
  told.answer(how, asked.text, undefined, sources.length > 0 ? { citations: [...new Set(sources)], as: '`sources`' } : {});
  const streaming = streamText({ model, prompt: QUESTION, maxRetries: 0 });
  told.answer(how + ', stream', await collect(streaming.textStream));
  assert((await streaming.usage).totalTokens > 0);
  const turns = [{ role: 'user', content: QUESTION }, ...asked.response.messages, { role: 'user', content: NEXT }];
  told.follow(how, (await generateText({ model, messages: turns, maxRetries: 0 })).text);
  await told.stop(how, async () => {
    const abort = new AbortController();
    try {
      for await (const _ of streamText({ model, prompt: SLOWLY, maxRetries: 0, abortSignal: abort.signal }).textStream) abort.abort();
    } catch (e) {
      assert.equal(e.name, 'AbortError');
    }
  });
  told.json('Output.object', (await generateText({ model, prompt: QUESTION, output: Output.object({ schema: Lighting }) })).output);
}

// LangChain
for (const [how, useResponsesApi] of [['chat', false], ['responses', true]]) {
  const told = Told('LangChain (JavaScript)', '@langchain/openai');
  const model = new ChatOpenAI({ model: 'ibid', apiKey: 'none', configuration: { baseURL: url }, maxRetries: 0, useResponsesApi });
  const said = await model.invoke(QUESTION);
  told.answer(how, said.text);
  told.answer(how + ', stream', await collect(await model.stream(QUESTION), (piece) => piece.text));
  told.follow(how, (await model.invoke([{ role: 'user', content: QUESTION }, said, { role: 'user', content: NEXT }])).text);
  await told.stop(how, async () => {
    const abort = new AbortController();
    try {
      for await (const piece of await model.stream(SLOWLY, { signal: abort.signal })) if (piece.text) abort.abort();
    } catch (e) {
      assert(abort.signal.aborted, e);
    }
  });
  told.json('withStructuredOutput', await model.withStructuredOutput(Lighting).invoke(QUESTION));
  const tools = [langchainTool(() => assert.fail('a tool is called'), { name: 'weather', description: 'weather', schema: z.object({}) })];
  const asked = await createAgent({ model, tools }).invoke({ messages: [{ role: 'user', content: QUESTION }] });
  told.answer('createAgent', asked.messages.at(-1).text);
  const filled = await createAgent({ model, tools, responseFormat: providerStrategy(Lighting) })
    .invoke({ messages: [{ role: 'user', content: QUESTION }] });
  told.json('createAgent', filled.structuredResponse);
}
