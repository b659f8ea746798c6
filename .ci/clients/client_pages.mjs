// Prints what chat pages show in Chromium: an answer that grows, with links to its sources, a second
// answer in the same chat, and a third one that the page's button stops. Open WebUI is also asked in
// a chat with a file. A picture of each page is kept.
import puppeteer from 'puppeteer-core';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { NEXT, QUESTION, SLOWLY } from './told.mjs';

const [pictures, ...started] = process.argv.slice(4); // NAME=VERSION=ADDRESS of each page
const said = 'The lantern is lit at dusk.'; // twice, from two sources
const later = 'The keeper puts out the lantern at dawn.';
const pages = {
  'Open WebUI': {
    input: '#chat-input',
    stop: '[aria-label="Stop"]',
    more: openWebUI,
    attach: attachFile,
    sources: 'chips with titles, quotes in the window of a source',
  },
  Chainlit: { input: '#chat-input', stop: '#stop-button' },
  gradio: { input: 'textarea', stop: '.stop-button' },
};

const chromium = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
const args = ['--no-sandbox', '--disable-dev-shm-usage'];
const browser = await puppeteer.launch({ executablePath: chromium, args, protocolTimeout: 300_000 });
const times = (page, words) => page.evaluate((words) => document.body.innerText.split(words).length - 1, words);
const until = (page, words, n) => page.waitForFunction((words, n) => document.body.innerText.split(words).length > n,
  { timeout: 120_000, polling: 100 }, words, n);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// openWebUI checks how the page shows sources and the results of its own tasks.
async function openWebUI(page) {
  await page.waitForFunction(() => document.title.startsWith('Lanterns 🏮'), { timeout: 60_000 }); // made by the title task
  await page.waitForFunction((words) => document.body.innerText.includes(words), { timeout: 60_000 }, NEXT); // made by the follow-ups task
  for (const list of ['Toggle 2 sources', 'Toggle 1 source']) {
    assert.equal(await page.$$eval(`[aria-label="${list}"]`, (all) => all.length), 1, list);
  }
  for (const title of ['Lanterns (harbour)', '灯台 🏮']) {
    assert.equal(await page.$$eval(`[aria-label="View source: ${title}"]`, (all) => all.length), 1, `a chip for ${title}`);
  }
  await page.click('[aria-label="Toggle 2 sources"]');
  await page.waitForSelector('[id^="source-"]', { timeout: 30_000 });
  await page.click('[id^="source-"]');
  const shown = await page.waitForFunction(
    (said) => [...document.querySelectorAll('[role="dialog"], .modal')].map((d) => d.innerText).find((text) => text.includes(said)),
    { timeout: 30_000 }, said);
  assert.equal((await shown.jsonValue()).split('Content').length - 1, 1, 'the window of a source has its quote alone');
  await pause(1000);
  await page.screenshot({ path: `${pictures}/Open WebUI, source.png` });
  const opening = browser.waitForTarget((target) => target.url().includes('/documents/'), { timeout: 30_000 });
  await page.click('a[href*="#quote#:~:text="]');
  const viewer = await (await opening).page();
  await viewer.waitForFunction(
    (said) => location.hash === '#quote' && [...document.querySelectorAll('mark')].some((mark) => mark.innerText === said),
    { timeout: 30_000, polling: 100 }, said);
  await viewer.close();
  await page.keyboard.press('Escape');
  await pause(1000);
}

// attachFile begins a chat with a file, which Open WebUI lists as its own source, and checks
// that each number in the text is a chip of the Ibid source with this number.
async function attachFile(page, ask) {
  writeFileSync('tides.md', '# Tides\n\nThe lantern is lit at noon, says this file.\n');
  const input = await page.waitForSelector('input[type=file][multiple]');
  await input.uploadFile('tides.md');
  await until(page, 'tides.md', 1);
  await pause(5000); // the page reads the file
  await ask(QUESTION);
  await until(page, said, 2);
  await page.waitForSelector('[aria-label="Toggle 3 sources"]', { timeout: 60_000 });
  await pause(2000);
  const chips = await page.$$eval('[aria-label^="View source: "]',
    (all) => all.map((chip) => chip.getAttribute('aria-label').slice('View source: '.length)));
  await page.click('[aria-label="Toggle 3 sources"]');
  await pause(1000);
  await page.screenshot({ path: `${pictures}/Open WebUI, file.png` });
  assert.deepEqual(chips, ['Lanterns (harbour)', '灯台 🏮']);
  const listed = await page.$$eval('[id^="source-"]', (all) => all.map((source) => source.innerText));
  for (const title of ['tides.md', 'Lanterns (harbour)', '灯台 🏮']) {
    assert.equal(listed.filter((words) => words.includes(title)).length, 1, `${title} in ${listed}`);
  }
}

for (const one of started) {
  const [name, version, address] = one.split('=');
  const has = pages[name];
  const page = await browser.newPage();
  await page.setViewport({ width: 1100, height: 760 });
  const step = async (what, work) => {
    try {
      await work();
    } catch (e) {
      await page.screenshot({ path: `${pictures}/${name}, failed.png` });
      throw new Error(`${name}: ${what}`, { cause: e });
    }
  };
  const ask = async (words) => {
    await page.click(has.input);
    await page.keyboard.type(words);
    await page.keyboard.press('Enter');
  };
  const open = async () => {
    await page.goto(address, { waitUntil: 'domcontentloaded', timeout: 120_000 });
    await page.waitForSelector(has.input, { timeout: 120_000 });
    await pause(3000); // a notice about a new version
    await page.keyboard.press('Escape');
    await pause(1000);
  };
  await step('it opens', open);
  await step('it answers', async () => {
    await ask(QUESTION);
    await until(page, said, 2);
    await pause(2000);
    const links = await page.$$eval('a[href*="/documents/"]', (all) => all.map((a) => a.href));
    assert.equal(new Set(links).size, 2, `the links are ${links}`);
    await page.screenshot({ path: `${pictures}/${name}.png` });
  });
  await step('it follows up', async () => {
    await ask(NEXT);
    await until(page, later, 1);
    await pause(2000);
    await page.screenshot({ path: `${pictures}/${name}, follow-up.png` });
  });
  if (has.more) await step('it shows sources', () => has.more(page));
  await step('it streams and stops', async () => {
    await ask(SLOWLY);
    await until(page, said, 3); // the first of two sentences
    await page.click(has.stop);
    await pause(8000); // time for the second sentence to arrive
    assert.equal(await times(page, said), 3);
    await page.screenshot({ path: `${pictures}/${name}, stopped.png` });
  });
  if (has.attach) {
    await step('it opens again', open);
    await step('it attaches a file', () => has.attach(page, ask));
  }
  const sources = has.sources ?? 'links in the text';
  for (const what of ['answer', 'stream', 'follow-up', 'stop']) {
    console.log(JSON.stringify({ client: name, version, what, how: 'its page', sources }));
  }
  await page.close();
}
await browser.close();
