// Prints what both official MCP clients for JavaScript get, over HTTP and from a process
// that they start.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import assert from 'node:assert/strict';
import { QUESTION, root, Told } from './told.mjs';

const [command, ...args] = process.argv.slice(4);

async function ask(told, how, client, transport) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), ['ask', 'list_documents', 'read_source', 'search', 'summarize']);
  const progress = [];
  const options = { onprogress: (p) => progress.push(p.message) };
  const call = (name, given) => (client instanceof Client1
    ? client.callTool({ name, arguments: given }, undefined, options)
    : client.callTool({ name, arguments: given }, options));
  const reply = await call('ask', { question: QUESTION });
  assert(!reply.isError && progress.length > 0, JSON.stringify(reply));
  const { text, sources } = reply.structuredContent;
  assert.equal(reply.content[0].text, text);
  assert.equal(reply.content.filter((c) => c.type === 'resource_link').length, sources.length);
  for (const source of sources) {
    const { contents } = await client.readResource({ uri: source.resource });
    assert(contents[0].text.includes(source.passages[0].quote), source.resource);
  }
  const listed = await call('list_documents', { filter: { format: 'markdown' } });
  assert.equal(listed.structuredContent.documents.length, 4, JSON.stringify(listed.structuredContent));
  assert.equal((await client.listResources()).resources.length, 4);
  assert((await call('ask', { question: QUESTION, model: 'x' })).isError, 'an unknown member is taken');
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((p) => p.name).sort(), ['answer', 'compare']);
  const { messages } = await client.getPrompt({ name: 'answer', arguments: { question: QUESTION } });
  assert(messages[0].content.text.includes(QUESTION), JSON.stringify(messages));
  const summary = await call('summarize', { document: sources[0].document });
  assert(!summary.isError && summary.content[0].text, JSON.stringify(summary));
  const [{ uriTemplate }] = (await client.listResourceTemplates()).resourceTemplates;
  const { completion } = await client.complete({ ref: { type: 'ref/resource', uri: uriTemplate },
    argument: { name: 'id', value: 'library/lan' } });
  assert.equal(completion.values.length, 1, JSON.stringify(completion));
  await client.close();
  told.answer('tool ask over ' + how, text, undefined, { sources: sources.map((s) => s.document) });
}

for (const [name, C, HTTP, Stdio] of [['@modelcontextprotocol/sdk', Client1, HTTP1, Stdio1],
  ['@modelcontextprotocol/client', Client, StreamableHTTPClientTransport, StdioClientTransport]]) {
  const told = Told(`MCP, \`${name}\``, name);
  await ask(told, 'http', new C({ name: 'clients', version: '1' }), new HTTP(new URL(root + '/mcp')));
  await ask(told, 'stdio', new C({ name: 'clients', version: '1' }), new Stdio({ command, args, env: process.env }));
}
