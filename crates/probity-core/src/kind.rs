//! The kinds of runners: what is done with a case. Each has a module, and a row in one table.
//!
//! What stands here is what every crate may know of a kind. How a runner of it asks its cases is
//! in the module of the same name in `probity-run`.

mod activation;
mod agent;
mod cases;
mod command;
mod compared;
mod confusion;
mod effectiveness;
mod program;
mod respond;
mod size_impact;

use serde::{Deserialize, Serialize};

pub use activation::{Activation, SetFigures, SkillRouted};
pub use agent::{AgentEnd, AgentWork, Agents};
pub use command::{Detected, Detector, Detectors, Labelled};
pub use compared::{CompareStats, JudgeStats};
pub use confusion::{Confusion, Grid, Negatives};
pub use effectiveness::{Effectiveness, SkillCompared};
pub use program::{FailFast, Program, ProgramReport};
pub use size_impact::{SizeImpact, SkillSizes};

use crate::{
    case::TestCase,
    classification::{Classification, Verdict},
    evidence::{Compared, Duel, Routed},
    figures::{Notice, Rate, Share, Sheet},
    gate::Gate,
    named_enum,
};

/// What is fixed about a kind of runner.
#[expect(clippy::struct_excessive_bools, reason = "each is a trait that a kind has or has not")]
#[derive(Clone, Copy, Debug)]
pub struct KindSpec {
    /// The keys of a runner in a suite that not every kind has.
    pub keys: &'static [&'static str],
    /// The gates of a runner that declares none.
    pub gates: fn() -> Vec<Gate>,
    /// Shares that only some kinds have and that its gates may name.
    pub rates: &'static [Rate],
    /// How a choice of skills is judged, if its cases choose from an index.
    pub choice: Option<ChoiceRule>,
    /// Whether several answers to a case are kept and compared by a judge.
    pub compares: bool,
    /// Whether its answers are shell commands.
    pub is_shell: bool,
    /// Whether it is a program that asks and judges cases of its own. It needs no backend; it cannot
    /// be replayed, resumed within its cases, or judged again.
    pub is_external: bool,
    /// Whether a model works on its cases with tools of ours, in a world.
    pub acts: bool,
}

impl KindSpec {
    /// One question a case, one answer, judged by what the case states.
    const PLAIN: Self = Self {
        keys: &[
            "dataset",
            "dataset_config",
            "env",
            "prompt",
            "prompts",
            "examples",
            "examples_k",
            "examples_seed",
            "judge",
            "judges",
            "combine",
            "judge_repeats",
            "structured",
            "rubric_prompt",
            "swap",
            "embeddings",
            "reranker",
            "user",
            "assert",
        ],
        gates: Vec::new,
        rates: &[],
        choice: None,
        compares: false,
        is_shell: false,
        is_external: false,
        acts: false,
    };
}

/// How a choice of skills is judged.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceRule {
    /// Whether exactly one has to be chosen.
    pub is_single: bool,
    /// What is kept of it.
    pub evidence: fn(Routed) -> Evidence,
}

/// How a stored result is judged again.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// By its reply.
    ByReply,
    /// By its reply, and what was kept of it stays.
    ByReplyAndKept {
        /// Why the work on the case did not come to its end.
        unfinished: Option<String>,
    },
    /// By what was kept of it alone.
    ByEvidence(Box<Classification>),
    /// Not at all: as it was found.
    AsFound,
}

/// What is kept of a case beside its verdict.
trait KindEvidence {
    /// How a result with it is judged again.
    fn judged(&self) -> Judged {
        Judged::ByReply
    }

    /// Comparisons that a judge made.
    fn duels(&self) -> &[Duel] {
        &[]
    }
}

impl KindEvidence for Routed {}

/// Makes the figures of a kind out of what is kept of its cases.
trait KindFold: Default {
    type Evidence;
    type Figures;

    fn add(&mut self, seen: Seen<'_>, evidence: &Self::Evidence);

    fn finish(self) -> Self::Figures;
}

/// The figures of a kind.
trait KindFigures {
    /// Shares that gates look at, those of its `SPEC`.
    fn rates(&self) -> Vec<(Rate, Share)> {
        Vec::new()
    }

    /// What people should look at.
    fn notices(&self) -> &[Notice] {
        &[]
    }

    /// The figures for people.
    fn sheet(&self) -> Sheet;

    /// Cases that are none of ours.
    fn own_cases(&self) -> Option<OwnCases> {
        None
    }
}

/// Cases that a program ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCases {
    /// Those that came to an end.
    pub finished: u64,
    /// Those that were planned.
    pub planned: u64,
}

/// One case, as figures see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The case's id.
    pub case_id: &'a str,
    /// What it came to.
    pub verdict: Verdict,
    /// Why.
    pub evidence: &'a Evidence,
}

/// Makes the enums that have a variant for each kind.
///
/// A row is a kind, its name in files, and its module, which has a constant `SPEC`. If more than a
/// verdict is kept of its cases, the row also says as what, and which [`KindFold`] makes which
/// figures of it.
macro_rules! kinds {
    ($(
        $(#[$meta:meta])*
        $variant:ident = $name:literal in $module:ident
        $(: $evidence:ty => $fold:ty => $figures:ty)?;
    )+) => {
        named_enum! {
            /// The kinds of runners.
            pub enum RunnerKind ("a kind of runner") {
                $($(#[$meta])* $variant = $name),+
            }
        }

        impl RunnerKind {
            /// What is fixed about it.
            pub const fn spec(self) -> &'static KindSpec {
                match self {
                    $(Self::$variant => &$module::SPEC,)+
                }
            }
        }

        /// What is kept beside a verdict, by the kind of runner.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Evidence {
            $($(
                #[doc = concat!("Of a case of kind `", $name, "`.")]
                #[serde(rename = $name)]
                $variant($evidence),
            )?)+
        }

        impl Evidence {
            fn get(&self) -> &dyn KindEvidence {
                match self {
                    $($(Self::$variant(it) => it as &$evidence,)?)+
                }
            }
        }

        /// The figures that only one kind of runner has.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "kind")]
        pub enum Figures {
            $($(
                #[doc = concat!("Of runners of kind `", $name, "`.")]
                #[serde(rename = $name)]
                $variant($figures),
            )?)+
        }

        impl Figures {
            fn get(&self) -> &dyn KindFigures {
                match self {
                    $($(Self::$variant(it) => it as &$figures,)?)+
                }
            }
        }

        #[derive(Debug)]
        enum State {
            $($($variant($fold),)?)+
        }

        impl State {
            fn new(evidence: &Evidence) -> Self {
                match evidence {
                    $($(Evidence::$variant(_) => Self::$variant(<$fold>::default()),)?)+
                }
            }

            fn add(&mut self, seen: Seen<'_>) {
                match (self, seen.evidence) {
                    $($(
                        (Self::$variant(fold), Evidence::$variant(it)) => {
                            <$fold>::add(fold, seen, it);
                        }
                    )?)+
                    // A lane is of one kind.
                    (_, _) => {}
                }
            }

            fn finish(self) -> Figures {
                match self {
                    $($(Self::$variant(fold) => Figures::$variant(<$fold>::finish(fold)),)?)+
                }
            }
        }
    };
}

kinds! {
    /// Any prompt, any expectation.
    Respond = "respond" in respond;
    /// A request in words, a shell command as the answer.
    Command = "command" in command: Detected => command::Fold => Detectors;
    /// Is the right skill chosen from an index?
    Activation = "activation" in activation: Routed => activation::Fold => Activation;
    /// Are look-alike skills told apart?
    Confusion = "confusion" in confusion: Routed => confusion::Fold => Confusion;
    /// Is the answer better with the skill than without?
    Effectiveness = "effectiveness" in effectiveness:
        Compared => effectiveness::Fold => Effectiveness;
    /// Does the size of a skill pay off?
    SizeImpact = "size_impact" in size_impact: Compared => size_impact::Fold => SizeImpact;
    /// A model with tools works on a task in a world of its own.
    Agent = "agent" in agent: AgentWork => agent::Fold => Agents;
    /// A program that runs cases of its own.
    Program = "program" in program: ProgramReport => program::Fold => Program;
}

impl Default for RunnerKind {
    /// That of a runner that names none.
    fn default() -> Self {
        Self::Respond
    }
}

impl RunnerKind {
    /// Whether its runners have a key in a suite that not all have.
    pub fn has_key(self, key: &str) -> bool {
        self.spec().keys.contains(&key)
    }

    /// The kind whose cases have such fields, where nobody says which; none if any may have them.
    pub fn of_case(case: &TestCase) -> Option<Self> {
        let routing = &case.routing;
        let chooses = !routing.expected_skills.is_empty() || routing.should_activate.is_some();
        chooses.then_some(match routing.group {
            Some(_) => Self::Confusion,
            None => Self::Activation,
        })
    }
}

impl Evidence {
    /// Reads what was written as JSON; none if it is something else.
    ///
    /// By way of a value, because numbers that are kept to the last digit cannot be read into a
    /// variant directly.
    pub fn parse(text: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        serde_json::from_value(value).ok()
    }

    /// How a result with it is judged again.
    pub fn judged(&self) -> Judged {
        self.get().judged()
    }

    /// Comparisons that a judge made.
    pub fn duels(&self) -> &[Duel] {
        self.get().duels()
    }
}

impl Figures {
    /// A share that gates look at; none if this kind of runner has none such.
    pub fn rate(&self, rate: Rate) -> Option<Share> {
        self.get().rates().into_iter().find(|(it, _)| *it == rate).map(|(_, share)| share)
    }

    /// What people should look at.
    pub fn notices(&self) -> Vec<Notice> {
        self.get().notices().to_vec()
    }

    /// The figures for people.
    pub fn sheet(&self) -> Sheet {
        let notices = self.notices();
        let notices = notices.into_iter().map(|it| (it.about, it.message)).collect();
        Sheet { notices, ..self.get().sheet() }
    }

    /// Cases that a program ran.
    pub fn own_cases(&self) -> Option<OwnCases> {
        self.get().own_cases()
    }
}

/// Folds evidence into figures.
#[derive(Debug, Default)]
pub struct Fold(Option<State>);

impl Fold {
    /// Takes in the next case. A case of another kind than the first is passed over.
    pub fn add(&mut self, seen: Seen<'_>) {
        self.0.get_or_insert_with(|| State::new(seen.evidence)).add(seen);
    }

    /// The figures; none without evidence.
    pub fn finish(self) -> Option<Figures> {
        self.0.map(State::finish)
    }
}

#[cfg(test)]
mod tests;
