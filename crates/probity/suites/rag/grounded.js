// SPDX-License-Identifier: MIT OR Apache-2.0
// Do the numbers and names of the answer stand in the passages, or in the question? `derived` of the case are numbers
// that follow from the passages. This finds what was made up; it does not see a wrong use of what is there.
module.exports = (output, { vars }) => {
  const plain = (text) => text.toLowerCase().replace(/(\d),(?=\d{3})/g, "$1");
  const answer = (/<answer>([\s\S]*)<\/answer>/.exec(output)?.[1] ?? "").replace(/\[[\d,\s]+\]/g, " ");
  const numbers = plain(answer).match(/\d+(?:[.:]\d+)*/g) ?? [];
  // A capital at the start of a sentence is no sign of a name.
  const runs = answer.matchAll(/[\p{L}\d,;)]\s+(\p{Lu}\p{L}+(?:\s+\p{Lu}\p{L}+)*)/gu);
  const names = [...runs].flatMap((it) => plain(it[1]).split(/\s+/));
  const told = plain([...vars.context, vars.query, ...(vars.derived ?? [])].join(" "));
  const known = new Set(told.match(/\d+(?:[.:]\d+)*|\p{L}+/gu) ?? []);
  const all = [...numbers, ...names];
  const made = all.filter((it) => !known.has(it));
  return {
    pass: made.length === 0,
    score: all.length === 0 ? 1 : 1 - made.length / all.length,
    reason: made.length === 0 ? "all of it is in the passages" : `not in the passages: ${made.join(", ")}`,
  };
};
