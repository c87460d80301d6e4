//! What is sent is what promptfoo sends. The expected texts are those of promptfoo 0.121.20.

use probity_load::template;

use super::*;

/// What is lost, and what the first prompt becomes in each case.
fn sent(config: &str, files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files.iter().chain(&[("promptfooconfig.yaml", config)]) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let mut shown = told(&notes);
    let runner = &draft.runners[0];
    let crate::draft::Asks::Template(asked) = &runner.prompts[0].asks else { panic!("no text") };
    for case in &draft.datasets[0].cases {
        let mut vars = runner.setup.prompt_vars.clone();
        vars.extend(case.case.vars().into_owned());
        let mut vars = template::fill_values(&vars).unwrap().into_owned();
        case.case.add_labels(&mut vars);
        let _ = writeln!(shown, "{}", template::render(asked, &vars).unwrap());
    }
    shown
}

#[test]
fn a_list_in_one_test_leaves_the_text_of_others_alone() {
    let config = r#"
prompts: ["Q {{a}} {{ c.d }}"]
providers: [echo]
tests: [{ vars: { a: [1, 2], c: { d: [3, 4] } } }, { vars: { a: Paris, c: { d: 5 } } }]
"#;
    insta::assert_snapshot!(sent(config, &[]), @r"
    Q 1,2 3,4
    Q Paris 5
    ");
}

#[test]
fn a_list_in_a_nested_template_has_commas() {
    let config = r#"
prompts: ["Q {{ t }} {{ f }} {{ s }}"]
providers: [echo]
defaultTest: { vars: { s: "all {{ a }}" } }
tests: [{ vars: { a: [1, 2], t: "nested {{a}}", f: "file://f.txt" } }, { vars: { a: x, t: y, f: z } }]
"#;
    insta::assert_snapshot!(sent(config, &[("f.txt", "of a file {{ a }}\n")]), @r"
    Q nested 1,2 of a file 1,2 all 1,2
    Q y z all x
    ");
}

#[test]
fn braces_in_a_value_are_sent_as_they_are() {
    let config = r#"
prompts: ["{{ a }}"]
providers: [echo]
tests:
  - vars: { a: "x {{DIT IS GARBAGE}} {{/>" }
  - vars: { a: "{% raw %}{{ b }}{% endraw %} and {{ 1 + 1 }}" }
  - vars: { a: "{{ b }} {{ nothing", b: B }
"#;
    insta::assert_snapshot!(sent(config, &[]), @r"
    x {{DIT IS GARBAGE}} {{/>
    {{ b }} and 2
    B {{ nothing
    ");
}

#[test]
fn a_file_within_a_table_is_named() {
    let config = r#"
prompts: ["{{ c.d }}"]
providers: [echo]
tests: [{ vars: { c: { d: "file://l.txt" } } }]
"#;
    let shown = sent(config, &[("l.txt", "text")]);
    assert!(shown.starts_with("lost 4: `file://l.txt` within a table or a list"), "{shown}");
}

#[test]
fn a_function_sees_the_variable_prompt() {
    let vars = |provider: &str| {
        let config = format!(
            "prompts: [\"{{{{prompt}}}}\"]\nproviders: [{provider}]\n\
             tests: [{{ vars: {{ prompt: hello }} }}]\n"
        );
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
        fs::write(folder.path().join("p.js"), "module.exports = () => 'x';\n").unwrap();
        let Outcome { draft, .. } = import(folder.path(), &Options::default()).unwrap();
        let case = &draft.datasets[0].cases[0].case;
        assert_eq!(&*case.prompt, "hello");
        case.prompt_vars.get("prompt").cloned()
    };
    assert_eq!(vars("file://p.js"), Some("hello".into()));
    assert_eq!(vars("echo"), None);
}

#[test]
fn a_judge_without_a_name_is_lost_only_where_something_is_judged() {
    let of = |assertion: &str| {
        suite(
            &format!(
                "prompts: [\"{{{{q}}}}\"]\nproviders: [echo]\n\
                 defaultTest: {{ options: {{ provider: {{ temperature: 0.1 }} }} }}\n\
                 tests: [{{ vars: {{ q: hi }}, assert: [{assertion}] }}]\n"
            ),
            &[],
        )
    };
    assert!(!of("{ type: contains, value: hi }").contains("lost"));
    assert!(
        of("{ type: llm-rubric, value: kind }").contains("lost 3: a provider with `temperature`")
    );
}
