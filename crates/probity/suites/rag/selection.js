// SPDX-License-Identifier: MIT OR Apache-2.0
// How many of the chosen passages are needed, and how many of the needed ones were chosen?
module.exports = (output, { vars }) => {
  const list = output.match(/\[[\d,\s]*\]/g)?.at(-1) ?? "";
  const chosen = new Set((list.match(/\d+/g) ?? []).map(Number));
  const right = vars.sources.filter((it) => chosen.has(it)).length;
  const precision = chosen.size === 0 ? 0 : right / chosen.size;
  const recall = right / vars.sources.length;
  return { score: (precision + recall) / 2, scores: { "selection-precision": precision, "selection-recall": recall } };
};
