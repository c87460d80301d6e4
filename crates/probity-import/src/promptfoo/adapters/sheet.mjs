// Tests in a sheet of Google's that everybody with the link may read, or in any other CSV that has an address.

export default async function tests({ url }) {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) throw new Error(`HTTP ${response.status} from ${url}`);
  if (/^\s*<(!doctype|html)/i.test(text)) throw new Error(`${url} is a page and no table: share it with everybody who has the link`);
  const [names, ...records] = parsed(text);
  return records.map((cells) => test(Object.fromEntries(names.map((name, at) => [name.trim(), cells[at] ?? '']))));
}

// Records of CSV.
function parsed(text) {
  const records = [];
  let record = [];
  let cell = '';
  let isQuoted = false;
  const end = () => {
    record.push(cell);
    cell = '';
  };
  const endRecord = () => {
    end();
    if (record.length > 1 || record[0] !== '') records.push(record);
    record = [];
  };
  const all = text.replace(/^\uFEFF/, '');
  for (let at = 0; at < all.length; at += 1) {
    const c = all[at];
    if (isQuoted) {
      if (c !== '"') cell += c;
      else if (all[at + 1] === '"') cell += all[(at += 1)];
      else isQuoted = false;
    } else if (c === '"' && cell === '') isQuoted = true;
    else if (c === ',') end();
    else if (c === '\n') endRecord();
    else if (c !== '\r') cell += c;
  }
  if (cell !== '' || record.length) endRecord();
  return records;
}

function test(record) {
  const made = { vars: {}, assert: [] };
  for (const [name, cell] of Object.entries(record)) {
    if (!name.startsWith('__')) made.vars[name] = cell;
    else if (cell.trim() === '') continue;
    else if (/^__expected\d*$/.test(name)) made.assert.push(assertion(cell.trim()));
    else if (name === '__description') made.description = cell;
    else if (name === '__threshold') made.threshold = Number(cell);
    else if (name.startsWith('__metadata:')) (made.metadata ??= {})[name.slice(11).replace(/\[\]$/, '')] = cell;
    else if (name !== '__metric') throw new Error(`the column ${name} means nothing here`);
  }
  const metric = record.__metric?.trim();
  if (metric) made.assert.forEach((it) => (it.metric = metric));
  return { ...made, options: { disableVarExpansion: true } };
}

const LISTS = ['contains-any', 'contains-all', 'icontains-any', 'icontains-all'];

// `type:value`, `type(threshold):value`, or the text that is expected.
function assertion(cell) {
  const [, code] = /^(?:javascript|fn|eval):([\s\S]*)$/.exec(cell) ?? [];
  if (code !== undefined) return { type: 'javascript', value: code };
  const [, rubric] = /^(?:grade|llm-rubric):([\s\S]*)$/.exec(cell) ?? [];
  if (rubric !== undefined) return { type: 'llm-rubric', value: rubric };
  const [, type, threshold, value] = /^((?:not-)?[a-z]+(?:-[a-z]+)*)(?:\(([\d.]+)\))?(?::([\s\S]*))?$/.exec(cell) ?? [];
  const isType = type && (value !== undefined || threshold !== undefined || /^(not-)?is-/.test(type));
  if (!isType) return { type: 'equals', value: cell };
  const made = { type };
  if (threshold !== undefined) made.threshold = Number(threshold);
  if (value !== undefined) {
    const plain = type.replace(/^not-/, '');
    made.value = LISTS.includes(plain) ? value.split(',').map((it) => it.trim()) : value.trim();
  }
  return made;
}
