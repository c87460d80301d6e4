//! What judges said of a reply, as a check.

use probity_core::{
    opinion::{Assessment, Consensus, JudgeSum, JudgedCheck, Threshold},
    score::Score,
};

use super::{Checked, Told};
use crate::excerpt::excerpt;

/// What the opinions of judges come to.
pub(super) fn check(assessment: Option<&Assessment>, threshold: Threshold) -> Checked {
    let Some(assessment) = assessment.map(|it| it.by(threshold)) else {
        return Checked::unjudged("no judge was asked".to_owned());
    };
    let checked = match assessment.consensus(threshold) {
        Ok(consensus) => {
            let Consensus { score, passed, .. } = consensus;
            let reason = Some(reason(&consensus.judges));
            let Score { value, said, .. } = Score::new("", None).saying(score);
            Checked { value, said, passed, reason, ..Checked::holds() }
        }
        Err(why) => Checked::unjudged(why),
    };
    let judged = worth_keeping(assessment).into_iter().collect();
    Checked { told: Told { judged, ..Told::default() }, ..checked }
}

/// The opinions, unless a score and a reason say as much.
fn worth_keeping(assessment: Assessment) -> Option<JudgedCheck> {
    let agreement = assessment.agreement();
    let Assessment { opinions, combine } = assessment;
    let has_statements =
        opinions.iter().filter_map(|it| it.judged()).any(|it| !it.statements.is_empty());
    let check = JudgedCheck { check: "".into(), combine, opinions, agreement };
    (check.opinions.len() > 1 || has_statements).then_some(check)
}

/// What judges said, in one line.
fn reason(judges: &[JudgeSum]) -> String {
    let gave = |score: f64, it: &JudgeSum| {
        format!("gave {score:.2}: {}", excerpt(it.reason.as_deref().unwrap_or_default(), 0))
    };
    if let [only @ JudgeSum { score: Some(score), .. }] = judges {
        return format!("the judge {}", gave(*score, only));
    }
    let each = judges.iter().map(|it| match it.score {
        Some(score) => format!("{} {}", it.judge, gave(score, it)),
        None => format!("{} gave no answer", it.judge),
    });
    let each: Vec<String> = each.collect();
    let content = judges.iter().filter(|it| it.passed).count();
    format!("{content} of {} judges are content; {}", judges.len(), each.join("; "))
}
