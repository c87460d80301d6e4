// A page that is used as a person would. Needs the package playwright.
import { asAnswer, fillAll, installed, load, wait } from './support.mjs';

const KEYS = { '<enter>': 'Enter', '<tab>': 'Tab', '<escape>': 'Escape' };
let kept = null;

export default async function ask(prompt, context, { config }) {
  const vars = { ...context.vars, prompt };
  const isFirst = kept === null;
  const { page, close } = kept ?? (await opened(config));
  if (config.persistSession) kept = { page, close: async () => {} };
  try {
    const extracted = {};
    for (const step of config.steps) {
      if (!step.runOnce || isFirst) await act(page, step, fillAll(step.args ?? {}, vars), extracted, config.timeoutMs ?? 30_000);
    }
    const parser = config.transformResponse ?? config.responseParser;
    if (!parser) return { output: Object.values(extracted).join('\n') };
    return asAnswer(await (await load(parser, ['extracted', 'finalHtml']))(extracted, await page.content()));
  } finally {
    if (!config.persistSession) await close();
  }
}

// A page in a browser of its own, or in one that runs already.
async function opened({ connectOptions, headless = true, cookies }) {
  const playwright = await installed('playwright');
  const chromium = playwright.chromium ?? playwright.default.chromium;
  const browser = !connectOptions ? await chromium.launch({ headless, args: ['--ignore-certificate-errors'] })
    : connectOptions.wsEndpoint ? await chromium.connect({ wsEndpoint: connectOptions.wsEndpoint })
    : await chromium.connectOverCDP(`http://localhost:${connectOptions.debuggingPort ?? 9222}`);
  const known = connectOptions ? browser.contexts()[0] : undefined;
  const surroundings = known ?? (await browser.newContext({ ignoreHTTPSErrors: true }));
  if (Array.isArray(cookies)) await surroundings.addCookies(cookies);
  const page = await surroundings.newPage();
  return { page, close: () => (connectOptions ? page.close() : browser.close()) };
}

async function act(page, { action, name }, args, extracted, timeout) {
  const found = async () => {
    try {
      await page.waitForSelector(args.selector, { timeout });
      return true;
    } catch {
      return false;
    }
  };
  switch (action) {
    case 'navigate':
      return page.goto(args.url);
    case 'click':
      if (await found()) return page.click(args.selector);
      if (!args.optional) throw new Error(`there is no ${args.selector} to click on`);
      return undefined;
    case 'type':
      await found();
      return type(page, args);
    case 'screenshot':
      return page.screenshot({ path: args.path, fullPage: args.fullPage });
    case 'wait':
      return wait(args.ms);
    case 'waitForNewChildren':
      return grown(page, args, timeout);
    case 'extract':
      if (args.script) extracted[name] = await page.evaluate(`(() => { ${args.script} })()`);
      else if (await found()) extracted[name] = await page.$eval(args.selector, (element) => element.textContent?.trim() ?? '');
      else throw new Error(`there is no ${args.selector} to read`);
      return undefined;
    default:
      throw new Error(`there is no action ${action}`);
  }
}

// Keys stand in the text as `<enter>`.
async function type(page, { selector, text }) {
  for (const part of String(text).split(/(<enter>|<tab>|<escape>)/i)) {
    const key = KEYS[part.toLowerCase()];
    if (key) await page.press(selector, key);
    else if (part) await page.fill(selector, part);
  }
}

// Waits until an element has more children than before.
async function grown(page, { parentSelector, delay = 1000, timeout: own }, timeout) {
  const count = () => page.$$eval(`${parentSelector} > *`, (all) => all.length);
  const [before, until] = [await count(), Date.now() + (own ?? timeout)];
  await wait(delay);
  while ((await count()) <= before) {
    if (Date.now() > until) throw new Error(`timeout: nothing new in ${parentSelector}`);
    await wait(200);
  }
}
