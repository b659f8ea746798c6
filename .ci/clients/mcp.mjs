// What the official MCP client for JavaScript gets, over HTTP and from a process
// of its own: a line for each.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import assert from 'node:assert/strict';

const [url, question, command, ...args] = process.argv.slice(2);

async function ask(how, transport) {
  const client = new Client({ name: 'clients', version: '1' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), ['ask', 'list_documents', 'read_source', 'search', 'summarize']);
  const told = [];
  const reply = await client.callTool({ name: 'ask', arguments: { question } }, undefined, { onprogress: (p) => told.push(p.message) });
  assert(!reply.isError && told.length > 0, JSON.stringify(reply));
  const { text, sources } = reply.structuredContent;
  assert.equal(reply.content[0].text, text);
  for (const source of sources) {
    const { contents } = await client.readResource({ uri: source.resource });
    assert(contents[0].text.includes(source.passages[0].quote), source.resource);
  }
  const { resources } = await client.listResources();
  assert.equal(resources.length, 3);
  const refused = await client.callTool({ name: 'ask', arguments: { question, model: 'x' } });
  assert(refused.isError, 'an unknown member is taken');
  await client.close();
  console.log(JSON.stringify({ client: 'MCP SDK (JavaScript)', how, text, sources: sources.map((s) => s.document) }));
}

await ask('http', new StreamableHTTPClientTransport(new URL(url + '/mcp')));
await ask('stdio', new StdioClientTransport({ command, args, env: process.env }));
