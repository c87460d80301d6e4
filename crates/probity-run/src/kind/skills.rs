//! What all kinds share whose cases are about skills.

use probity_core::{
    case::TestCase, criteria::CriteriaProblem, located::Step, problem::Problem, record::SkillsInfo,
};
use probity_load::{
    skill::{self, Library},
    suite::RunnerConfig,
};

use super::Site;

/// Reads the skills of a runner.
pub(super) fn load(
    runner: &RunnerConfig,
    site: &Site<'_>,
    report: &mut dyn FnMut(Problem),
) -> Option<Library> {
    let folders: Vec<_> = runner.skills.iter().map(|it| site.folder.join(it)).collect();
    skill::load(&folders, report)
}

/// What is recorded of them.
pub(super) fn info(library: &Library) -> SkillsInfo {
    SkillsInfo {
        count: library.skills.len() as u64,
        index_characters: library.index(|_| true).chars().count() as u64,
        digest: library.digest().to_string(),
        digests: library.digests(),
    }
}

/// What is wrong with a case about skills.
pub(super) fn check(library: &Library, case: &TestCase) -> Vec<CriteriaProblem> {
    let mut problems = Vec::new();
    if case.system.is_some() {
        let message = "a case about skills has no `system` of its own";
        problems.push(problem("system", "bad-case", message, Some("give the runner one")));
    }
    let routing = &case.routing;
    let lists = [
        ("expected_skills", routing.expected_skills.as_slice()),
        ("acceptable_skills", &routing.acceptable_skills),
        ("skill", routing.skill.as_slice()),
    ];
    for (key, names) in lists {
        for name in names.iter().filter(|it| !library.skills.contains_key(*it)) {
            let message = format!("there is no skill `{name}`");
            problems.push(problem(key, "unknown-skill", &message, None));
        }
    }
    problems
}

pub(super) fn problem(
    key: &'static str,
    code: &'static str,
    message: &str,
    help: Option<&str>,
) -> CriteriaProblem {
    let help = help.map(ToOwned::to_owned);
    CriteriaProblem { path: vec![Step::Key(key)], code, message: message.to_owned(), help }
}

pub(super) fn missing(key: &'static str, help: Option<&str>) -> CriteriaProblem {
    problem(key, "missing-field", &format!("field `{key}` is missing"), help)
}
