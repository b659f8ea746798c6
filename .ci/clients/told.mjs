// Shared by the clients for JavaScript: prints a line for each thing that a client showed.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export const [root, left] = process.argv.slice(2);
export const url = root + '/v1';
export const [QUESTION, NEXT] = ['When is the lantern lit?', 'And who puts it out?'];
export const SLOWLY = QUESTION + ' Tell me slowly.';

const closed = async () => Number(await (await fetch(left)).text());

// Told returns functions that report what a client shows; name is the package with its version.
export function Told(client, name) {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'));
  const print = (what, how, more) => console.log(JSON.stringify({ client, version, what, how, ...more }));
  return {
    // answer reports the answer to QUESTION, whole or joined from a stream.
    answer(how, text, annotations, more) {
      const letters = Array.from(text); // characters, not units of UTF-16
      annotations = annotations?.map((n) => ({ url: n.url, title: n.title, text: letters.slice(n.start_index, n.end_index).join('') }));
      print(how.includes(', stream') ? 'stream' : 'answer', how, { text, annotations, ...more });
    },
    // follow reports the answer to NEXT after QUESTION.
    follow: (how, text) => print('follow-up', how, { text }),
    json(how, value) {
      assert.deepEqual(value, { when: 'at dusk' });
      print('JSON', how);
    },
    // stop has leave read part of the answer to SLOWLY and stop it, and checks that the model's stream is closed.
    async stop(how, leave) {
      const before = await closed();
      await leave();
      for (let i = 0; i < 100; i++) {
        if ((await closed()) > before) return print('stop', how);
        await new Promise((done) => setTimeout(done, 100));
      }
      assert.fail(`${client}, ${how}: the model continues after a stop`);
    },
  };
}

// collect joins the texts of a stream.
export async function collect(stream, textOf = (piece) => piece) {
  let all = '';
  for await (const piece of stream) all += textOf(piece) ?? '';
  return all;
}
