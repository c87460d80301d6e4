//! A world to play in.

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock};

use probity_sandbox::{
    Command, Execution, Keeper, Limits, Sandbox, execution::Change, world::Prepared,
};
use tempfile::TempDir;

/// The sandbox of all tests. Where the machine has none, they fail: a test that cannot test must not look like a success.
pub(crate) fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::open(&keeper()).expect("these tests need namespaces"))
}

pub(crate) fn keeper() -> Keeper {
    Keeper::program(env!("CARGO_BIN_EXE_probity-keeper"))
}

/// A world with a few files, and where it is.
pub(crate) struct Playground {
    pub(crate) prepared: Prepared,
    _tree: TempDir,
}

impl Playground {
    pub(crate) fn new(name: &str, fill: impl FnOnce(&Path)) -> Self {
        let tree = tempfile::tempdir().expect("a directory");
        let home = tree.path().join("home/user");
        fs::create_dir_all(&home).expect("a home");
        fill(&home);
        let mark = tree.path().display().to_string();
        let variables = [
            ("PROBITY_TEST_MARK", &*mark),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/home/user"),
            ("LANG", "C.UTF-8"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let prepared = Prepared {
            name: name.to_owned(),
            digest: format!("{name}-{}", tree.path().display()),
            tree: tree.path().to_owned(),
            directory: "/home/user".to_owned(),
            variables: BTreeMap::from(variables),
            processes: Vec::new(),
        };
        Self { prepared, _tree: tree }
    }

    /// What all processes in it have in their environment, and no others.
    pub(crate) fn mark(&self) -> &str {
        &self.prepared.variables["PROBITY_TEST_MARK"]
    }

    pub(crate) fn shell(&self, text: &str) -> Execution {
        self.shell_within(text, &Limits::default())
    }

    pub(crate) fn shell_within(&self, text: &str, limits: &Limits) -> Execution {
        let command = Command::Shell(text.to_owned());
        sandbox().execute_anew(&self.prepared, &command, limits).expect("an execution")
    }
}

/// What changed, a line each: `+` made, `-` removed, `~` changed.
pub(crate) fn lines(changes: &[Change]) -> Vec<String> {
    let sign = |change: &Change| match (&change.before, &change.after) {
        (None, _) => '+',
        (_, None) => '-',
        (Some(_), Some(_)) => '~',
    };
    changes.iter().map(|change| format!("{} {}", sign(change), change.path)).collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a test of this program as an ordinary user. An ordinary user has done so already.
pub(crate) fn as_nobody(test: &str) {
    let id = std::process::Command::new("id").arg("-u").output().expect("a user id");
    if id.stdout != b"0\n" {
        // Nothing is missed: the test itself ran as an ordinary user.
        return;
    }
    run_test(test, &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
}

/// Runs a test of this program as the root of a user namespace that has no other user.
pub(crate) fn as_only_root(test: &str) {
    run_test(test, &["unshare", "-Ur"]);
}

fn run_test(test: &str, by: &[&str]) {
    let output = std::process::Command::new(by[0])
        .args(&by[1..])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .current_dir("/")
        .output()
        .expect("a program of util-linux");
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", text(&output.stderr));
}
