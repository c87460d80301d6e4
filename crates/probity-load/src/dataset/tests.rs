use std::{fmt::Write as _, fs, path::PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use probity_core::{
    criteria::{Criteria, Matcher},
    problem::Place,
};

/// A folder that goes away with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Every problem of a file as `line:column code message`, then the number of cases.
fn report(name: &str, text: impl AsRef<[u8]>) -> String {
    let folder = Folder::new();
    let path = folder.file(name, text);
    let mut lines = String::new();
    let summary = read(&[&path], &|_| Vec::new(), &mut |item| {
        if let Item::Problem(Problem { code, message, place, case_id, help, .. }) = item {
            let place =
                place.map_or_else(String::new, |Place { line, column, source, highlight }| {
                    format!("{line}:{column} `{}` ", &source[highlight])
                });
            let case = case_id.map_or_else(String::new, |id| format!(" ({id})"));
            let help = help.map_or_else(String::new, |help| format!("; {help}"));
            let help = help.replace(&folder.0.path().display().to_string(), "FOLDER");
            let _ = writeln!(lines, "{place}{code}: {message}{case}{help}");
        }
    });
    let _ = write!(lines, "{} cases", summary.cases);
    lines
}

fn load(name: &str, text: &str) -> TestDataset {
    let path = Folder::new();
    let path_file = path.file(name, text);
    TestDataset::load(&[&path_file], &|_| Vec::new()).unwrap()
}

const SEED: &str = r#"version = "1.0.0"

[[test_cases]]
id = "list_all_files_01"
prompt = "list all files"
expected_command = "ls -la"
category = "correctness"
safe = true
posix_compliant = true
notes = "Basic directory listing"
"#;

#[test]
fn the_format_of_the_seed_loads_as_it_is_written() {
    let dataset = load("cases.toml", SEED);
    assert_eq!(dataset.version, "1.0.0");
    let [case] = dataset.test_cases.as_slice() else { panic!("one case") };
    assert_eq!(case.id, "list_all_files_01");
    assert_eq!(case.expected_command.as_deref(), Some("ls -la"));
    assert_eq!((case.safe, case.posix_compliant), (Some(true), Some(true)));
    assert_eq!(dataset.by_category(&Category::CORRECTNESS).len(), 1);
    assert_eq!(dataset.by_category(&Category::SAFETY).len(), 0);
}

#[test]
fn every_problem_is_reported_at_its_place_in_one_pass() {
    insta::assert_snapshot!(report("cases.toml", r#"version = "2.1.0"
colour = "red"

[[test_cases]]
id = "a"
prompt = "   "
expected_command = "ls"
category = "corectness"
safe = "yes"
posix_compliant = true

[[test_cases]]
id = "a"
prompt = "say {{ word }}"
promt = "typo"
expected_classification = "passed"

[[test_cases]]
id = "no good"
prompt = "x"
expected_command = "ls"
category = "safety"
"#), @r#"
    2:1 `colour` unknown-field: unknown field `colour`; it is one of `version`, `test_cases`, `name`, `description`, `license`, `source`, `safety_level`; a name of your own begins with `x-`
    1:11 `"2.1.0"` newer-version: dataset version 2.1.0 is newer than this program; it reads versions up to 1.x: update it
    6:10 `"   "` blank-field: field `prompt` is blank (a)
    8:12 `"corectness"` unknown-value: unknown category of shell commands `corectness` (a); did you mean `correctness`?
    9:8 `"yes"` wrong-type: field `safe` must be true or false, not a string (a)
    15:1 `promt` unknown-field: unknown field `promt` (a); did you mean `prompt`?
    16:27 `"passed"` unknown-value: unknown classification `passed` (a); did you mean `pass`?
    13:6 `"a"` duplicate-id: id `a` is already taken (a); its first use is at FOLDER/cases.toml:5
    14:18 `word` undefined-variable: `word` has no value in `prompt` (a); add it to `prompt_vars`, or write braces that are not a variable as `{% raw %}{{ … }}{% endraw %}`
    19:6 `"no good"` bad-id: id has the character ' '; use letters, digits and `. _ / : - # @ +`
    18:1 `[[test_cases]]` missing-field: field `safe` is missing; a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`
    18:1 `[[test_cases]]` missing-field: field `posix_compliant` is missing; a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`
    0 cases
    "#);
}

#[test]
fn broken_lines_of_jsonl_do_not_hide_the_others() {
    insta::assert_snapshot!(report("cases.jsonl", concat!(
        "\u{feff}{\"version\": \"1.2\"}\n",
        "# a comment\n\n",
        "{\"id\": \"a\", \"prompt\": \"p\"}\n",
        "{\"id\": \"b\", \"prompt\": \"p\"\n",
        "[1]\n",
        "{\"id\": \"c\", \"prompt\": \"p\", \"id\": \"d\"}\n",
        "{\"id\": \"e\", \"prompt\": \"p\", \"tags\": [\"x\", 3]}\n",
        "{\"id\": \"f\", \"prompt\": \"p\"}",
    )), @r#"
    5:26 `` json: expected `,` or `}`, found the end of the text
    6:1 `[1]` wrong-type: a case must be a table, not a list
    7:28 `"id"` duplicate-key: `id` is there twice (d)
    8:42 `3` wrong-type: field `tags` must be a list of strings, not a number (e)
    2 cases
    "#);
}

#[test]
fn text_that_is_not_utf8_is_placed() {
    insta::assert_snapshot!(report("a.jsonl", b"{\"id\":\"a\",\"prompt\":\"p\"}\n{\"id\":\"\xff\"}\n"), @r"
    2:8 `�` not-utf8: the text is not UTF-8 from here on
    1 cases
    ");
    insta::assert_snapshot!(report("a.toml", b"version = \"1\"\nx = \"\xe9\"\n"), @"
    2:6 `�` not-utf8: the text is not UTF-8 from here on
    0 cases
    ");
}

#[test]
fn a_dataset_without_cases_is_an_error() {
    insta::assert_snapshot!(report("a.jsonl", "# nothing\n"), @"
    empty-dataset: there is no case in the file
    0 cases
    ");
    insta::assert_snapshot!(report("a.json", "[]"), @"
    empty-dataset: there is no case in the file
    0 cases
    ");
    insta::assert_snapshot!(report("a.csv", ""), @"
    empty-dataset: there is no case in the file
    0 cases
    ");
}

#[test]
fn files_that_are_not_there_or_not_ours_are_problems_too() {
    let mut codes = Vec::new();
    let missing = Path::new("no/such/file.toml");
    let foreign = Path::new("cases.xlsx");
    let summary = read(&[missing, foreign], &|_| Vec::new(), &mut |item| {
        if let Item::Problem(problem) = item {
            codes.push(problem.code);
        }
    });
    assert_eq!(codes, ["unreadable", "unknown-format"]);
    assert_eq!(summary.errors, 2);
}

#[test]
fn yaml_reports_places_and_reads_anchors() {
    insta::assert_snapshot!(report("cases.yaml", r#"
version: 1.0.0
base: &base
  category: safety
test_cases:
  - id: a
    prompt: "delete {{ what }}"
    prompt_vars: { what: everything }
    expected_classification: refusal
  - <<: *base
    id: b
    prompt: yes
    expected_command: rm x
    safe: True
    posix_compliant: 1
"#), @"
    3:1 `base` unknown-field: unknown field `base`; it is one of `version`, `test_cases`, `name`, `description`, `license`, `source`, `safety_level`; a name of your own begins with `x-`
    15:22 `1` wrong-type: field `posix_compliant` must be true or false, not a number (b)
    1 cases
    ");
}

#[test]
fn broken_yaml_toml_and_json_say_where() {
    insta::assert_snapshot!(report("a.yaml", "a: [1, 2\nb: 3\n"), @"
    2:2 `:` yaml: illegal placement of ':' indicator
    0 cases
    ");
    insta::assert_snapshot!(report("a.toml", "version = \n[[test_cases]\n"), @"
    2:14 `` toml: unclosed array table, expected `]`
    1:11 `` toml: string values must be quoted, expected literal string
    0 cases
    ");
    insta::assert_snapshot!(report("a.json", "{\"test_cases\": [{]}"), @"
    1:18 `]` json: expected a string key or `}`, found `]`
    0 cases
    ");
}

#[test]
fn a_key_that_is_too_long_for_yaml_is_not_written() {
    let write = |length: usize| {
        let inner = serde_json::json!({ "k".repeat(length): 1 });
        let vars = [("x".to_owned(), inner)].into();
        let case = TestCase { id: "a".to_owned(), prompt_vars: vars, ..TestCase::default() };
        let mut writer = Writer::new(Format::Yaml, None, Vec::new()).unwrap();
        writer.case(&case).map_err(|it| it.to_string())?;
        Ok::<_, String>(String::from_utf8(writer.finish().unwrap()).unwrap())
    };
    // With its quotes it has 1,024 characters.
    let mut problems = 0;
    let text = write(1022).unwrap();
    read_bytes(Path::new("a.yaml"), Format::Yaml, text.as_bytes(), &|_| Vec::new(), &mut |item| {
        problems += usize::from(matches!(item, Item::Problem(it) if it.code == "yaml"));
    });
    assert_eq!(problems, 0, "{text}");
    assert!(write(1023).unwrap_err().contains("1024 characters"));
}

#[test]
fn yaml_aliases_cannot_explode() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inner = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(text, "a{level}: &a{level} [{inner}]");
    }
    assert!(report("a.yaml", text).contains("aliases repeat too much"));
}

#[test]
fn csv_cells_are_typed_by_their_column() {
    let dataset = load(
        "cases.csv",
        concat!(
            "id,prompt,expected_command,category,safe,posix_compliant,tags,prompt_vars,assert\n",
            "a,\"list \"\"all\"\" files,\nnow\",ls -a,correctness,TRUE,false,x; y,,\n",
            "b,say {{ w }},,,,,,\"{\"\"w\"\": 1}\",\"[{\"\"type\"\":\"\"contains\"\",\"\"value\"\":\"\"1\"\"}]\"\n",
        ),
    );
    let [a, b] = dataset.test_cases.as_slice() else { panic!("two cases") };
    assert_eq!(&*a.prompt, "list \"all\" files,\nnow");
    assert_eq!((a.safe, a.posix_compliant), (Some(true), Some(false)));
    assert_eq!(a.tags, ["x", "y"]);
    assert_eq!(b.prompt_vars["w"], json!(1));
    assert_eq!(b.criteria.assertions.len(), 1);
}

#[test]
fn csv_problems_point_at_the_cell() {
    insta::assert_snapshot!(report("a.csv", concat!(
        "id,prompt,safe\n",
        "a,\"two\nlines\",\n",
        "b,x,maybe\n",
        "c,x\n",
        "d,5\" disk,\n",
    )), @"
    4:5 `maybe` wrong-type: field `safe` must be true or false, not a string (b)
    5:1 `c,x` csv: the record has 2 cells, the header 3
    2 cases
    ");
}

#[test]
fn a_schema_may_be_a_file_beside_the_dataset() {
    let folder = Folder::new();
    folder.file("answer.json", r#"{"type": "object"}"#);
    let path = folder.file("cases.jsonl", r#"{"id":"a","prompt":"p","schema":"answer.json"}"#);
    let dataset = TestDataset::load(&[&path], &|_| Vec::new()).unwrap();
    assert_eq!(dataset.test_cases[0].criteria.schema, Some(json!({ "type": "object" })));
    let path = folder.file("bad.jsonl", r#"{"id":"a","prompt":"p","schema":"none.json"}"#);
    let error = TestDataset::load(&[&path], &|_| Vec::new()).unwrap_err();
    assert_eq!(error.problems[0].code, "bad-schema");
}

#[test]
fn the_digest_sees_the_cases_and_nothing_else() {
    let digest = |name: &str, text: &str| load(name, text).digest.to_string();
    let jsonl = concat!(
        r#"{"id":"a","prompt":"p","tags":["x"]}"#,
        "\n",
        r#"{"id":"b","prompt":"q","notes":"why"}"#,
        "\n",
    );
    let reordered = "[{\"notes\":\"because\",\"prompt\":\"q\",\"id\":\"b\"},\n {\"tags\":[\"x\"],\"id\":\"a\",\"prompt\":\"p\"}]";
    let toml = "version = \"1.0.0\"\n[[test_cases]]\nid='a'\nprompt='p'\ntags=['x']\n[[test_cases]]\nid='b'\nprompt='q'\n";
    assert_eq!(digest("a.jsonl", jsonl), digest("a.json", reordered));
    assert_eq!(digest("a.jsonl", jsonl), digest("a.toml", toml));
    assert_ne!(digest("a.jsonl", jsonl), digest("a.jsonl", &jsonl.replace("\"q\"", "\"r\"")));
}

#[test]
fn two_files_of_one_dataset_share_their_ids() {
    let folder = Folder::new();
    let one = folder.file("one.jsonl", r#"{"id":"a","prompt":"p"}"#);
    let two = folder.file("two.jsonl", r#"{"id":"a","prompt":"q"}"#);
    let error = TestDataset::load(&[&one, &two], &|_| Vec::new()).unwrap_err();
    assert_eq!(error.problems.len(), 1);
    assert!(error.problems[0].help.as_deref().unwrap().ends_with("one.jsonl:1"));
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        "\\PC{0,12}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn test_case()(
        id in "[A-Za-z0-9._/-]{1,20}",
        prompt in "[a-z][ -z|~\n\r\té中🦀\u{1}\u{7f}]{0,40}",
        command in prop::option::of("[a-z][ -~]{0,20}"),
        vars in prop::collection::btree_map("[a-z]{1,6}", json_value(), 0..3),
        tags in prop::collection::vec("[a-z][a-z:;,\"]{0,7}", 0..3),
        notes in prop::option::of("[a-z]\\PC{0,20}"),
        expected in prop::option::of("[a-z]\\PC{0,20}"),
    ) -> TestCase {
        TestCase {
            id, prompt: prompt.into(), tags, notes, prompt_vars: vars,
            category: command.as_ref().map(|_| Category::SAFETY),
            safe: command.as_ref().map(|_| false),
            posix_compliant: command.as_ref().map(|_| true),
            expected_command: command,
            criteria: Criteria {
                matcher: expected.as_ref().map(|_| Matcher::Exact),
                expected_response: expected.map(Into::into),
                ..Criteria::default()
            },
            ..TestCase::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(case in test_case()) {
        let folder = Folder::new();
        for name in ["a.toml", "a.jsonl", "a.json", "a.yaml", "a.csv"] {
            let mut writer = Writer::new(Format::of_path(Path::new(name)).unwrap(), None, Vec::new()).unwrap();
            writer.case(&case).unwrap();
            let path = folder.file(name, writer.finish().unwrap());
            let dataset = TestDataset::load(&[&path], &|_| Vec::new()).map_err(|error| {
                TestCaseError::fail(format!("{name}: {:?}\n{}", error.problems, fs::read_to_string(&path).unwrap()))
            })?;
            prop_assert_eq!(&dataset.test_cases[0], &case, "{}", name);
        }
    }

    #[test]
    fn no_bytes_break_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for name in ["a.toml", "a.jsonl", "a.json", "a.yaml", "a.csv"] {
            report(name, &bytes);
        }
    }

    #[test]
    fn no_text_breaks_a_reader(text in "[\\[\\]{}:,\"'#&*!|>%@`a1\\- \n\t=.]{0,80}") {
        for name in ["a.toml", "a.jsonl", "a.json", "a.yaml", "a.csv"] {
            report(name, &text);
        }
    }
}

#[test]
fn a_column_that_nothing_reads_is_told_of_once_at_the_header() {
    let rows = "1,hi,red,x\n2,ho,blue,y\n".to_owned();
    let text = format!("id,prompt,colour,promt,x-own\n{}", rows.replace('\n', ",z\n"));
    insta::assert_snapshot!(report("cases.csv", &text), @r"
    1:11 `colour` unknown-field: unknown column `colour`
    1:18 `promt` unknown-field: unknown column `promt`; did you mean `prompt`?
    2 cases
    ");
}

#[test]
fn names_that_begin_with_x_are_the_users_own() {
    let text = r#"{"id": "a", "prompt": "p", "x-owner": "me", "X-owner": 1}"#;
    insta::assert_snapshot!(report("cases.jsonl", text), @r#"
    1:45 `"X-owner"` unknown-field: unknown field `X-owner` (a)
    1 cases
    "#);
}

#[test]
fn templates_are_filled_in_as_a_run_would() {
    let text = r#"
{"id": "a", "prompt": "say {{ word | uper }}", "prompt_vars": {"word": "x"}}
{"id": "b", "prompt": "line \"one\"\n{{ user.name }} {{ user.nmae }}", "prompt_vars": {"user": {"name": "x"}}}
{"id": "c", "prompt": "p", "system": "You are {{ who }}"}
{"id": "d", "prompt": "{{ 'x' * n }}", "prompt_vars": {"n": 1000000000}}
"#;
    insta::assert_snapshot!(report("cases.jsonl", text), @r"
    2:38 `uper` bad-template: `prompt` cannot be used as a template: there is no filter `uper` (did you mean `upper`?) (a); write `{% raw %}…{% endraw %}` around text that is not a template
    3:57 `user.nmae` undefined-variable: `user.nmae` has no value in `prompt` (b); add it to `prompt_vars`, or write braces that are not a variable as `{% raw %}{{ … }}{% endraw %}`
    4:50 `who` undefined-variable: `who` has no value in `system` (c); add it to `prompt_vars`, or write braces that are not a variable as `{% raw %}{{ … }}{% endraw %}`
    5:31 `*` bad-template: `prompt` cannot be used as a template: one side of `*` must be a number up to 10000 that is written out (d); write `{% raw %}…{% endraw %}` around text that is not a template
    0 cases
    ");
}

#[test]
fn seven_thousand_signs_in_a_prompt_are_an_error() {
    let text = format!(r#"{{"id": "a", "prompt": "{{{{ {}1 }}}}"}}"#, "-".repeat(7_000));
    assert!(report("cases.jsonl", &text).contains("more than 100 operators"));
}

#[test]
fn half_a_pair_of_escapes_is_an_error_at_its_place() {
    let text = r#"{"id": "a", "prompt": "\ud83d\ude00 \\ud800 \ud800x \udc00"}"#;
    insta::assert_snapshot!(report("cases.jsonl", text), @r"
    1:45 `\ud800` lone-surrogate: `\ud800` is half of a pair of escapes, and no character
    1:53 `\udc00` lone-surrogate: `\udc00` is half of a pair of escapes, and no character
    1 cases
    ");
}

#[test]
fn strict_is_the_strict_level_of_json() {
    let text = r#"{"id": "a", "prompt": "p", "expected_format": "json", "strict": true}"#;
    let dataset = load("cases.jsonl", text);
    let level = dataset.test_cases[0].criteria.json_level;
    assert_eq!(level, Some(probity_core::criteria::JsonLevel::Strict));
    let both = text.replace("true}", "true, \"json_level\": \"repair\"}");
    insta::assert_snapshot!(report("cases.jsonl", &both), @r"
    1:65 `true` contradiction: `strict` and `json_level` do not agree (a)
    0 cases
    ");
}

#[test]
fn a_line_of_very_many_problems_is_read_at_once_and_counted_exactly() {
    let keys: Vec<String> = (0..300_000).map(|it| format!("\"k{it}\":1")).collect();
    let text = format!("{{\"id\":\"a\",\"prompt\":\"p\",{}}}", keys.join(","));
    let began = std::time::Instant::now();
    let mut problems = Vec::new();
    let path = Path::new("cases.jsonl");
    let summary =
        super::read_bytes(path, Format::Jsonl, text.as_bytes(), &|_| Vec::new(), &mut |item| {
            if let Item::Problem(problem) = item {
                problems.push(problem);
            }
        });
    assert_eq!((summary.warnings, problems.len()), (300_000, MOST_PROBLEMS + 1));
    assert_eq!(problems[MOST_PROBLEMS].message, "there are 299000 more warnings");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
