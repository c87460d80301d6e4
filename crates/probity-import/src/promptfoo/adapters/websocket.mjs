// A server that is asked over a web socket: one message is sent, and the answer is read from those that come back.
import crypto from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { asAnswer, fill, load } from './support.mjs';

const LARGEST = 8 << 20;

export default async function ask(prompt, context, { config }) {
  const vars = { ...context.vars, prompt, env: process.env };
  const message = fill(config.messageTemplate, vars);
  const asWhole = config.transformResponse ?? config.responseParser;
  const transform = asWhole ? await load(asWhole, ['data', 'process']) : (data) => ({ output: data });
  const stream = config.streamResponse ? await load(config.streamResponse, ['accumulator', 'data', 'context']) : null;
  let made = { error: 'the socket was closed before there was an answer' };
  await talk(fill(config.url, vars), config, message, async (text) => {
    if (stream) {
      const [next, isComplete] = await stream(made, { data: text }, context);
      made = asAnswer(next);
      return isComplete;
    }
    let data = text;
    try {
      data = JSON.parse(text);
    } catch {
      // It is a text.
    }
    made = asAnswer(await transform(data));
    if (made.output === undefined && !made.error) made = { error: 'there is no output in what the server said' };
    return true;
  });
  return made;
}

// Sends a message and hands over what comes back, until one of them is enough.
function talk(url, config, message, onText) {
  return new Promise((resolve, reject) => {
    const address = new URL(url.replace(/^ws/, 'http'));
    const key = crypto.randomBytes(16).toString('base64');
    const protocols = [config.protocols ?? []].flat();
    const request = (address.protocol === 'https:' ? https : http).request(address, {
      headers: {
        ...config.headers,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': key,
        ...(protocols.length ? { 'sec-websocket-protocol': protocols.join(', ') } : {}),
      },
      timeout: config.timeoutMs ?? 300_000,
    });
    request.on('timeout', () => request.destroy(new Error('timeout: the server does not answer')));
    request.on('error', reject);
    request.on('response', (response) => reject(new Error(`HTTP ${response.statusCode}: no web socket`)));
    request.on('upgrade', (response, socket, head) => {
      const end = (error) => {
        socket.destroy();
        error ? reject(error) : resolve();
      };
      const accepted = crypto.createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
      if (response.headers['sec-websocket-accept'] !== accepted) return end(new Error('the server speaks no web sockets'));
      socket.setTimeout(config.timeoutMs ?? 300_000, () => end(new Error('timeout: the server does not answer')));
      socket.on('error', end);
      socket.on('close', () => end());
      const reader = frames(socket, end, onText);
      socket.on('data', reader);
      socket.write(frame(1, Buffer.from(message)));
      if (head.length) reader(head);
    });
    request.end();
  });
}

function frame(kind, payload) {
  const mask = crypto.randomBytes(4);
  const size = payload.length;
  const head =
    size < 126 ? Buffer.from([0x80 | kind, 0x80 | size])
    : size < 65536 ? Buffer.from([0x80 | kind, 0xfe, size >> 8, size & 255])
    : Buffer.concat([Buffer.from([0x80 | kind, 0xff]), (() => { const it = Buffer.alloc(8); it.writeBigUInt64BE(BigInt(size)); return it; })()]);
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at % 4])]);
}

// Reads frames as they arrive: texts go to `onText`, one after the other, and pings are answered.
function frames(socket, end, onText) {
  let waiting = Buffer.alloc(0);
  let text = Buffer.alloc(0);
  let queue = Promise.resolve(false);
  return (chunk) => {
    waiting = Buffer.concat([waiting, chunk]);
    for (;;) {
      if (waiting.length < 2) return;
      const [first, second] = waiting;
      const short = second & 127;
      const start = short === 127 ? 10 : short === 126 ? 4 : 2;
      if (waiting.length < start) return;
      const size = short === 127 ? Number(waiting.readBigUInt64BE(2)) : short === 126 ? waiting.readUInt16BE(2) : short;
      if (size + text.length > LARGEST) return end(new Error('the answer is too large'));
      if (waiting.length < start + size) return;
      const payload = waiting.subarray(start, start + size);
      waiting = waiting.subarray(start + size);
      const kind = first & 15;
      if (kind === 8) {
        queue = queue.then(() => end());
        return;
      }
      if (kind === 9) socket.write(frame(10, payload));
      if (kind > 2) continue;
      text = Buffer.concat([text, payload]);
      if (!(first & 128)) continue;
      const whole = text.toString();
      text = Buffer.alloc(0);
      queue = queue.then(async (isDone) => {
        if (isDone) return true;
        const enough = await onText(whole);
        if (enough) end();
        return enough;
      }).catch((error) => end(error));
    }
  };
}
