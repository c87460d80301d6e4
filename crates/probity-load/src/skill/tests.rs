use std::{fs, path::Path};

use super::*;
use probity_core::evidence::Tier;
use probity_core::problem::Problem;

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn load_all(root: &Path) -> (Option<Library>, Vec<Problem>) {
    let mut problems = Vec::new();
    let library = load(&[root.to_owned()], &mut |problem| problems.push(problem));
    (library, problems)
}

#[test]
fn folders_and_files_are_skills_and_the_rest_are_companions() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    write(at, "deep/er/sql/SKILL.md", "---\nname: sql\ndescription: Write SQL.\n---\nBody.\n");
    write(at, "deep/er/sql/notes.md", "One.");
    write(at, "deep/er/sql/more/two.md", "Two.");
    write(at, "deep/er/sql/.hidden", "no");
    fs::write(at.join("deep/er/sql/picture.png"), [0xff, 0xfe, 0]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at.join("deep/er/sql/link.md")).unwrap();
    write(at, "git.md", "---\ndescription: >\n  Use Git\n  well.\n---\n# Git\n");
    write(at, "README.md", "not a skill");
    let (library, problems) = load_all(at);
    assert_eq!(problems, []);
    let library = library.unwrap();
    assert_eq!(library.index(|_| true), "- git: Use Git well.\n- sql: Write SQL.\n");
    assert_eq!(library.index(|id| id == "sql"), "- sql: Write SQL.\n");
    let sql = &library.skills["sql"];
    let names: Vec<&str> = sql.companions.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["more/two.md", "notes.md"]);
    assert_eq!(sql.companion_bytes(), 8);
    let cut = sql.with_companions(6);
    assert_eq!(cut, "Body.\n\n## File `more/two.md`\n\nTwo.\n\n## File `notes.md`\n\nOn");
}

#[test]
fn a_cut_never_splits_a_character() {
    let skill = Skill {
        id: "a".to_owned(),
        description: "ä".repeat(130),
        body: "".into(),
        bytes: 0,
        path: PathBuf::new(),
        companions: vec![Companion { name: "b".to_owned(), text: "ää".to_owned() }],
    };
    assert_eq!(skill.short().chars().count(), INDEX_CHARACTERS);
    assert!(skill.short().ends_with('…'));
    assert_eq!(skill.with_companions(3), "\n\n## File `b`\n\nä");
}

#[test]
fn every_problem_has_its_place() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    write(at, "a/SKILL.md", "no front matter\n");
    write(at, "b/SKILL.md", "---\nname: b\n---\n");
    write(at, "c/SKILL.md", "---\nname: c\ndescription: [\n---\n");
    write(at, "d/SKILL.md", "---\nname: b\ndescription: x\n---\n");
    write(at, "e/SKILL.md", "---\nname: two words\ndescription: x\n---\n");
    let (library, problems) = load_all(at);
    assert_eq!(library, None);
    let told: Vec<String> = problems
        .iter()
        .map(|it| {
            let file = it.file.rsplit('/').nth(1).unwrap_or_default();
            let line = it.place.as_ref().map_or(0, |place| place.line);
            format!("{file}:{line} {}", it.message)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n").replace(&at.display().to_string(), "ROOT"));
    let (library, problems) = load_all(&at.join("nowhere"));
    assert_eq!((library, problems.len()), (None, 1));
}

#[test]
fn a_summary_is_the_description_and_the_scope() {
    let summary = |body: &str| {
        let skill = Skill {
            id: "a".to_owned(),
            description: "Say  what.".to_owned(),
            body: body.into(),
            bytes: 0,
            path: PathBuf::new(),
            companions: Vec::new(),
        };
        skill.summary()
    };
    let body = "# A\n\nIntro.\n\n## Scope\n\nThis, see [docs](x.md).\n```sh\nrm\n```\n\n- not that [skill:b]\n### Part\nin\n## Next\nout\n";
    assert_eq!(summary(body), "Say what.\n\nThis, see docs.\n\n- not that\n### Part\nin");
    assert_eq!(summary("# A\n\nIntro [1].\n## B\nno\n"), "Say what.\n\nIntro [1].");
    assert_eq!(summary(""), "Say what.");
}

#[test]
fn tiers_are_by_bytes() {
    let tiers = [0, 4_999, 5_000, 15_000, 15_001].map(|bytes| Tier::of(bytes).as_str());
    assert_eq!(tiers, ["small", "small", "medium", "medium", "large"]);
}

proptest::proptest! {
    /// Any Markdown at all: no panic, and nothing longer than it may be.
    #[test]
    fn any_text_has_a_summary(
        body in "(#{1,3} |Scope|```|~~~|\\[skill:a\\]|\\[x\\]\\(y|\\n|[a-zä\u{1F600} ]){0,60}",
        description in "[a-zä ]{0,300}",
        limit in 0_u64..40,
    ) {
        let companions = vec![Companion { name: "c".to_owned(), text: body.clone() }];
        let skill = Skill {
            id: "a".to_owned(),
            description,
            bytes: body.len() as u64,
            body: body.into(),
            path: PathBuf::new(),
            companions,
        };
        proptest::prop_assert!(skill.short().chars().count() <= INDEX_CHARACTERS);
        proptest::prop_assert!(!skill.short().contains('\n'));
        let _ = skill.summary();
        let _ = skill.with_companions(limit);
    }
}
