// A server that wants a signature in each request, or a certificate of its client.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { asAnswer, fill, fillAll, installed, load } from './support.mjs';

export default async function ask(prompt, context, { config }) {
  const time = Date.now();
  const values = { ...context.vars, prompt, env: process.env };
  if (config.signatureAuth) Object.assign(values, await signed(config.signatureAuth, time));
  const url = new URL(fill(config.url, values));
  for (const [name, value] of Object.entries(config.queryParams ?? {})) url.searchParams.set(name, fill(value, values));
  const body = filledBody(config.body, values);
  const { status, text } = await send(url, {
    method: config.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: filledHeaders(config.headers, config.body ?? undefined, values),
    ...certificates(config.tls),
  }, body, config.timeout);
  if (status >= 400) return { error: `HTTP ${status}: ${text.slice(0, 500)}` };
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // It is a text.
  }
  const parser = config.transformResponse ?? config.responseParser;
  if (!parser) return { output: json ?? text };
  return asAnswer(await (await load(parser, ['json', 'text', 'context']))(json, text, { vars: values }));
}

// A text that is a table or a list in JSON takes its place in the body as such.
function filledBody(body, values) {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return fill(body, values);
  return JSON.stringify(fillAll(body, values), (_, value) => (typeof value === 'string' ? parsed(value) : value));
}

function parsed(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// What is sent as JSON says so, unless the settings do.
function filledHeaders(headers, body, values) {
  const filled = fillAll(headers ?? {}, values);
  const isStated = Object.keys(filled).some((it) => it.toLowerCase() === 'content-type');
  return isStated || body === undefined || typeof body === 'string' ? filled : { 'content-type': 'application/json', ...filled };
}

function send(url, options, body, timeout = 300_000) {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, { ...options, timeout }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('timeout: the server does not answer')));
    request.on('error', reject);
    request.end(body);
  });
}

// Certificates and rules of a connection. Files are read as they are.
function certificates(tls) {
  if (!tls) return {};
  const from = (text, file) => text ?? (file ? fs.readFileSync(file) : undefined);
  const { ca, caPath, cert, certPath, key, keyPath, pfx, pfxPath, passphrase, ...others } = tls;
  const all = {
    ...others,
    passphrase,
    ca: from(ca, caPath),
    cert: from(cert, certPath),
    key: from(key, keyPath),
    pfx: pfx ? Buffer.from(pfx, 'base64') : from(undefined, pfxPath),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

let kept = null;

// The signature of what the template says, as good as long as the server takes it.
async function signed(auth, time) {
  if (kept && time - kept.signatureTimestamp < (auth.signatureValidityMs ?? 300_000) * 0.9) return kept;
  const data = fill(auth.signatureDataTemplate ?? '{{signatureTimestamp}}', { signatureTimestamp: time }).replace(/\\n/g, '\n');
  const signer = crypto.createSign(auth.signatureAlgorithm ?? 'SHA256').update(data);
  kept = { signature: signer.sign(await privateKey(auth)).toString('base64'), signatureTimestamp: time };
  return kept;
}

async function privateKey(auth) {
  const file = auth.privateKeyPath ?? auth.keyPath;
  if (auth.privateKey) return auth.privateKey;
  if (file) return fs.readFileSync(file, 'utf8');
  if (auth.keyContent) return Buffer.from(auth.keyContent, 'base64').toString();
  if (auth.keystorePath) {
    const stores = await installed('jks-js');
    const password = auth.keystorePassword ?? process.env.PROMPTFOO_JKS_PASSWORD;
    const entries = (stores.toPem ?? stores.default.toPem)(fs.readFileSync(auth.keystorePath), password);
    const entry = entries[auth.keyAlias ?? Object.keys(entries)[0]];
    if (!entry?.key) throw new Error(`there is no key ${auth.keyAlias ?? ''} in ${auth.keystorePath}`);
    return entry.key;
  }
  if (auth.pfxPath) {
    const pem = await installed('pem');
    const password = auth.pfxPassword ?? process.env.PROMPTFOO_PFX_PASSWORD;
    return new Promise((resolve, reject) => {
      (pem.readPkcs12 ?? pem.default.readPkcs12)(auth.pfxPath, { p12Password: password }, (error, found) =>
        error ? reject(error) : resolve(found.key));
    });
  }
  throw new Error('`signatureAuth` names no key');
}
