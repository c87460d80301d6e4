//! A workflow that runs a suite for each change.

use std::{
    borrow::Cow,
    env,
    path::{Path, PathBuf},
};

use super::{Planned, SUITE_FILE};
use crate::{cli::init::CiArg, failure::Failure};

/// What stands for the suite in the workflows.
const SUITE: &str = "SUITE";

/// The workflow for the one suite that is written, at the top of the repository.
pub(super) fn plan(ci: CiArg, planned: &[Planned]) -> Result<Planned, Failure> {
    let [suite] = planned else {
        return Err(Failure::new("`--ci` is for one suite at a time")
            .hint("name one with --suite, and add the others to the workflow"));
    };
    let here = env::current_dir()
        .map_err(|error| Failure::new("there is no folder here").because(error))?;
    let root = top_of_repository(&here);
    let path = here.join(&suite.folder).join(SUITE_FILE);
    let suite = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    if !suite.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c)) {
        let message = format!("the path `{suite}` cannot be written into a workflow");
        return Err(Failure::new(message).hint("use letters, digits, dots, dashes and slashes"));
    }
    let (name, text) = match ci {
        CiArg::Github => (".github/workflows/probity.yml", include_str!("../../../ci/github.yml")),
        CiArg::Gitlab => (".gitlab-ci.yml", include_str!("../../../ci/gitlab.yml")),
    };
    let folder = if root == here { PathBuf::new() } else { root.to_owned() };
    let text = Cow::Owned(text.replace(SUITE, &suite));
    Ok(Planned { folder, files: vec![(name, text)], backends: Vec::new() })
}

/// The folder above that has a `.git`; else this one.
fn top_of_repository(here: &Path) -> &Path {
    here.ancestors().find(|it| it.join(".git").exists()).unwrap_or(here)
}
