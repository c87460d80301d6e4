// Everything that adapters ask, on one port: it prints its address and logs each request. It writes a private key
// into its folder, and takes only what is signed with it where a signature is wanted.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';

const { privateKey, publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
fs.writeFileSync('private_key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));

const runs = new Map();

const ROUTES = {
  // Hugging Face: pages of rows, and a page that is too large at first.
  'GET /rows': ({ query }) => {
    const [offset, length] = [Number(query.get('offset')), Number(query.get('length'))];
    if (length > 50) return [422, { error: 'too large' }];
    const all = Array.from({ length: 120 }, (_, at) => ({ row: { number: at, word: `w${at}`, split: query.get('split') } }));
    return [200, { num_rows_total: all.length, rows: all.slice(offset, offset + length) }];
  },
  'GET /table.csv': () => [200, 'text,__expected\nhello,contains: hello\n"two, ""quoted""",javascript: output.length > 3\nbad,equals: other\n'],
  'POST /openai/threads': () => [200, { id: 't1' }],
  'POST /openai/threads/t1/messages': ({ body, headers }) =>
    headers['api-key'] === 'azure-key' ? ((runs.prompt = body.content), [200, {}]) : [401, 'no key'],
  'POST /openai/threads/t1/runs': ({ body }) => {
    runs.set('tools', body.tools?.length ?? 0);
    return [200, { id: 'r1', status: 'queued', asked: body.assistant_id }];
  },
  'GET /openai/threads/t1/runs/r1': () =>
    runs.has('output')
      ? [200, { id: 'r1', status: 'completed' }]
      : [200, { id: 'r1', status: 'requires_action', required_action: { submit_tool_outputs: { tool_calls: [{ id: 'c1', type: 'function', function: { name: 'double', arguments: '{"n": 21}' } }] } } }],
  'POST /openai/threads/t1/runs/r1/submit_tool_outputs': ({ body }) => {
    runs.set('output', body.tool_outputs[0].output);
    return [200, {}];
  },
  'GET /openai/threads/t1/messages': () => [200, { data: [
    { role: 'assistant', created_at: 2, content: [{ type: 'text', text: { value: `It is ${runs.get('output')} by ${runs.get('tools')} tool` } }] },
    { role: 'user', created_at: 1, content: [{ type: 'text', text: { value: runs.prompt } }] },
  ] }],
  'GET /openai/threads/t1/runs/r1/steps': () => [200, { data: [] }],
  'POST /chat.postMessage': ({ text }) => ((runs.slack = new URLSearchParams(text).get('text')), [200, { ok: true, ts: '1.0' }]),
  'POST /conversations.history': () => [200, { ok: true, messages: [
    { ts: '3.0', type: 'message', text: 'later' }, { ts: '2.0', type: 'message', text: `you said: ${runs.slack}` }, { ts: '1.5', type: 'message', bot_id: 'B', text: 'a bot' },
  ] }],
  'POST /identity/token': ({ text }) =>
    new URLSearchParams(text).get('apikey') === 'ibm-key' ? [200, { access_token: 'ibm-token', expires_in: 3600 }] : [400, {}],
  'POST /ml/v1/text/generation': ({ headers, body }) =>
    headers.authorization === 'Bearer ibm-token'
      ? [200, { results: [{ generated_text: `${body.model_id}/${body.project_id}/${body.parameters.max_new_tokens}: ${body.input}`, input_token_count: 3, generated_token_count: 2 }] }]
      : [401, {}],
  'POST /signed': ({ headers, body }) => {
    const isSigned = crypto.createVerify('SHA256').update(`app${headers.timestamp}`).verify(publicKey, headers.signature ?? '', 'base64');
    return isSigned ? [200, { reply: `signed: ${body.message}` }] : [403, 'not signed'];
  },
  'POST /moderations': ({ headers, body }) =>
    headers.authorization === 'Bearer openai-key'
      ? [200, { results: [{ flagged: body.input.includes('bad'), categories: { hate: body.input.includes('bad'), violence: false } }] }]
      : [401, {}],
  'POST /classify': ({ body }) => [200, [[{ label: 'nice', score: body.inputs.includes('bad') ? 0.1 : 0.9 }, { label: 'mean', score: 0.2 }]]],
  'POST /similar': ({ body }) => [200, [body.inputs.sentences[0] === body.inputs.source_sentence ? 1 : 0.25]],
  'POST /hook': ({ body }) => [200, { pass: body.output.length > 3, score: 0.5, reason: `${body.context.vars.word}` }],
  'GET /api/public/v2/prompts/greet%20all': ({ headers, query }) =>
    headers.authorization === `Basic ${Buffer.from('open:secret').toString('base64')}`
      ? [200, { prompt: query.get('label') === 'live' ? [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'Hi {{ word }}' }] : `version ${query.get('version')}: {{word}}` }]
      : [401, {}],
};

const server = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const url = new URL(request.url, 'http://x');
  const text = Buffer.concat(parts).toString();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Not all are JSON.
  }
  const route = ROUTES[`${request.method} ${url.pathname}`];
  const [status, answer] = route ? route({ query: url.searchParams, headers: request.headers, body, text }) : [404, url.pathname];
  response.writeHead(status);
  response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
});

// A web socket that answers in pieces of its frames, after a ping.
server.on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'];
  const accept = crypto.createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    if ((data[0] & 15) !== 1) return;
    const size = data[1] & 127;
    const start = size === 126 ? 4 : 2;
    const mask = data.subarray(start, start + 4);
    const asked = JSON.parse(data.subarray(start + 4).map((byte, at) => byte ^ mask[at % 4]).toString()).prompt;
    const frame = (head, text) => Buffer.concat([Buffer.from([head, Buffer.byteLength(text)]), Buffer.from(text)]);
    const send = (text) => {
      const half = Math.floor(text.length / 2);
      socket.write(Buffer.concat([frame(0x89, ''), frame(0x01, text.slice(0, half)), frame(0x80, text.slice(half))]));
    };
    if (request.url === '/stream') send(JSON.stringify({ type: 'part', message: 'not yet' }));
    send(JSON.stringify({ type: 'message', message: `${asked}!`, output: `${asked}?` }));
  });
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
