// SPDX-License-Identifier: MIT OR Apache-2.0
// Does the answer cite the passages that say it, and no others? `sources` of the case are their numbers.
module.exports = (output, { vars }) => {
  const answer = /<answer>([\s\S]*)<\/answer>/.exec(output)?.[1] ?? "";
  const cited = new Set([...answer.matchAll(/\[(\d+(?:\s*,\s*\d+)*)\]/g)].flatMap((it) => it[1].split(",").map(Number)));
  const right = vars.sources.filter((it) => cited.has(it)).length;
  const precision = cited.size === 0 ? 0 : right / cited.size;
  const recall = right / vars.sources.length;
  const wanted = vars.sources.map((it) => `[${it}]`).join("");
  const found = [...cited].map((it) => `[${it}]`).join("") || "nothing";
  return {
    pass: precision === 1 && recall === 1,
    score: (precision + recall) / 2,
    reason: `cites ${found}, and ${wanted} says it`,
    scores: { "citation-precision": precision, "citation-recall": recall },
  };
};
