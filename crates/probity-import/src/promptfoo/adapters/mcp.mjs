// A server of tools: the prompt names a tool and its arguments as JSON, and the answer is what the tool returns.
import { spawn } from 'node:child_process';
import path from 'node:path';
import readline from 'node:readline';
import { asAnswer, bearer, load } from './support.mjs';

const VERSION = '2025-03-26';
let connected = null;

export default async function ask(prompt, context, { config }) {
  let call;
  try {
    call = JSON.parse(String(context.vars.prompt || prompt));
  } catch {
    return { error: 'the prompt is no JSON with `tool` and `args`' };
  }
  const name = call.tool ?? call.toolName ?? call.function ?? call.functionName ?? call.name;
  const args = call.args ?? call.arguments ?? call.params ?? call.parameters ?? {};
  if (typeof name !== 'string') return { error: 'the prompt names no `tool`' };
  connected ??= Promise.all([config.server ?? [], config.servers ?? []].flat().map(connect));
  const servers = await connected;
  const server = servers.find((it) => it.tools.includes(name));
  if (!server) return { error: `no server has a tool ${name}` };
  let result;
  try {
    result = await server.ask('tools/call', { name, arguments: { ...config.defaultArgs, ...args } });
  } catch (error) {
    return { error: `the tool cannot be called: ${error.message}` };
  }
  const content = (result.content ?? []).map((it) => (it.type === 'text' ? it.text : JSON.stringify(it))).join('\n');
  const parser = config.transformResponse ?? config.responseParser;
  if (!parser) return { output: content };
  const transform = await load(parser, ['json', 'text', 'context']);
  return asAnswer(await transform(result, content, { toolName: name, toolArgs: args, originalPayload: call }));
}

// A server, ready to be asked, with the names of its tools.
async function connect(described) {
  const send = described.url ? overHttp(described) : overPipes(described);
  const server = { ask: send, tools: [] };
  await send('initialize', { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: 'probity', version: '1' } });
  await send('notifications/initialized', undefined, true);
  server.tools = ((await send('tools/list', {})).tools ?? []).map((it) => it.name);
  return server;
}

function result({ result: made, error }) {
  if (error) throw new Error(error.message);
  return made ?? {};
}

function overPipes({ command, args = [], path: file, env }) {
  const runs = file?.endsWith('.py') ? 'python3' : process.execPath;
  const [program, all] = command ? [command, args] : [runs, [path.resolve(file), ...args]];
  const child = spawn(program, all, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const open = new Map();
  let ended = null;
  const end = (error) => {
    ended = error;
    for (const { reject } of open.values()) reject(error);
  };
  child.on('error', end);
  child.on('exit', (code) => end(new Error(`the server ended with ${code}`)));
  child.stdin.on('error', end);
  process.on('exit', () => child.kill());
  readline.createInterface({ input: child.stdout }).on('line', (line) => {
    let answer;
    try {
      answer = JSON.parse(line);
    } catch {
      return;
    }
    open.get(answer.id)?.resolve(answer);
    open.delete(answer.id);
  });
  let last = 0;
  return async (method, params, isNotice) => {
    if (ended) throw ended;
    const id = isNotice ? undefined : (last += 1);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return isNotice ? {} : result(await new Promise((resolve, reject) => open.set(id, { resolve, reject })));
  };
}

function overHttp({ url, headers, auth }) {
  let session = {};
  let last = 0;
  const keys = auth?.type === 'bearer' ? bearer(auth.token) : auth?.type === 'api_key' ? { [auth.keyName ?? 'x-api-key']: auth.value ?? auth.api_key } : {};
  return async (method, params, isNotice) => {
    const id = isNotice ? undefined : (last += 1);
    const response = await fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers, ...keys, ...session },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${text.slice(0, 500)}`);
    const given = response.headers.get('mcp-session-id');
    if (given) session = { 'mcp-session-id': given };
    if (isNotice) return {};
    const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    const told = isStream ? text.split('\n').filter((it) => it.startsWith('data:')).map((it) => JSON.parse(it.slice(5))) : [JSON.parse(text)];
    return result(told.find((it) => it.id === id) ?? {});
  };
}
