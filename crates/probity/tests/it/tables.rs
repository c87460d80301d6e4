//! `probity export` of tables. `scripts/tables-test` reads them with other programs.

use std::process::Output;

use crate::project::Project;

const SUITE: &str = "[backends.echo]\nkind = \"echo\"\n[[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n";

fn project() -> Project {
    let cases = r#"{"id":"one","prompt":"1","expected_response":"1"}"#;
    let project = Project::new().file("probity.toml", SUITE).file("cases.jsonl", cases);
    expect(&project.run(&["run", "-q"]), 0, &[]);
    project
}

#[track_caller]
fn expect(output: &Output, code: i32, told: &[&str]) {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    told.iter().for_each(|it| assert!(err.contains(it), "{it}: {err}"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_tables_says_so() {
    let output = project().run(&["export", "--as", "parquet", "-o", "tables"]);
    expect(&output, 2, &["this build writes no tables", "--features parquet"]);
}

#[cfg(feature = "parquet")]
mod built {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The files under a folder, without what is particular to a run.
    fn files(project: &Project, folder: &str) -> BTreeSet<String> {
        fn each(folder: &Path, found: &mut BTreeSet<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => each(&path, found),
                    false => _ = found.insert(path.to_str().unwrap().to_owned()),
                }
            }
        }
        let mut found = BTreeSet::new();
        each(&project.path(folder), &mut found);
        let root = project.path(folder);
        let shortened = |path: &String| {
            let mut parts = path.strip_prefix(root.to_str().unwrap()).unwrap().split('/').skip(1);
            let (table, run, part) = (parts.next()?, parts.next()?, parts.next()?);
            Some(format!("{table}/{}/{part}", run.split_once('=')?.0))
        };
        found.iter().filter_map(shortened).collect()
    }

    fn run_id(project: &Project) -> String {
        let listed = project.run(&["runs", "--json"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let last: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
        last["run_id"].as_str().unwrap().to_owned()
    }

    #[test]
    fn each_table_has_a_folder_and_each_run_one_within_it() {
        let project = project();
        expect(&project.run(&["run", "-q"]), 0, &[]);
        let output = project.run(&["export", "--all", "--as", "parquet", "-o", "t"]);
        expect(&output, 0, &["1 runs, 1 cases, 1 scores, 1 calls", "2 runs in t"]);
        assert_eq!(fs::read_dir(project.path("t/cases")).unwrap().count(), 2);
        let only = project.run(&["export", "--as", "arrow", "--tables", "cases,runs", "-o", "a"]);
        expect(&only, 0, &["1 run in a"]);
        let found: Vec<String> = files(&project, "a").into_iter().collect();
        assert_eq!(found, ["cases/run/part-00000.arrow", "runs/run/part-00000.arrow"]);
    }

    #[test]
    fn what_is_there_is_replaced_only_on_demand() {
        let project = project();
        let export = ["export", "--as", "parquet", "-o", "t"];
        expect(&project.run(&export), 0, &[]);
        let part = format!("t/runs/run={}/part-00000.parquet", run_id(&project));
        fs::write(project.path(&part), "mine").unwrap();
        expect(&project.run(&export), 2, &["is there already", "--overwrite"]);
        assert_eq!(project.read(&part), "mine");
        expect(&project.run(&[&export[..], &["--overwrite"]].concat()), 0, &[]);
        assert!(fs::read(project.path(&part)).unwrap().starts_with(b"PAR1"));
    }

    #[test]
    fn a_damaged_store_leaves_nothing_behind() {
        let project = project();
        let store = rusqlite::Connection::open(project.path(".probity/probity.db")).unwrap();
        store.execute("UPDATE results SET verdict = 'fail', class = 'fail'", []).unwrap();
        drop(store);
        let output = project.run(&["export", "--as", "parquet", "-o", "t"]);
        expect(&output, 2, &["the cases of", "cannot be read"]);
        assert!(files(&project, "t").is_empty());
        assert!(!project.path("t/cases").join(format!("run={}", run_id(&project))).exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let project = project().file("t", "a file");
        let output = project.run(&["export", "--as", "parquet", "-o", "t"]);
        expect(&output, 2, &["t/runs/run=", "Not a directory"]);
    }

    #[test]
    fn tables_need_a_folder() {
        expect(&project().run(&["export", "--as", "arrow"]), 2, &["-o DIR says where to"]);
    }
}

#[test]
fn other_forms_are_made_of_one_run() {
    let output = project().run(&["export", "latest", "latest", "--as", "chat"]);
    expect(&output, 2, &["this is made of one run at a time"]);
}
