//! What a case asks: its own words, and those that a runner puts around them.

use probity_core::request::{Message, Request, ToolChoice};
use serde_json::{Value, json};

use crate::project::{Project, errors};

fn suite(runner: &str) -> String {
    format!(
        "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\nbackends = [\"e\"]\ndataset = \"cases.jsonl\"\n{runner}\n"
    )
}

/// What each case is asked, lane by lane.
fn asked(project: &Project, runner: &str) -> Vec<Request> {
    let plan = project.read(&suite(runner)).plan();
    let mut all = Vec::new();
    plan.lanes.iter().for_each(|lane| lane.requests(|_, request| all.push(request)));
    all
}

/// A conversation as `role: text`.
fn said(request: &Request) -> Vec<String> {
    let text = |it: &Message| {
        format!("{}: {}", it.role.as_str(), it.texts().map(|it| &**it).collect::<String>())
    };
    request.messages.iter().map(text).collect()
}

fn plain() -> Value {
    json!({ "id": "a", "prompt": "How is {{ name }}?", "prompt_vars": { "name": "Ada" } })
}

#[test]
fn a_case_is_asked_in_its_own_words() {
    let project = Project::new().cases(&[plain()]);
    assert_eq!(said(&asked(&project, "")[0]), ["user: How is Ada?"]);
    let system = "system = \"Speak of {{ name }} as {{ id }}.\"";
    let expected = ["system: Speak of Ada as a.", "user: How is Ada?"];
    assert_eq!(said(&asked(&project, system)[0]), expected);
    // Its own instructions go before those of the runner.
    let mut own = plain();
    own["system"] = json!("Mind {{ name }}.");
    let project = Project::new().cases(&[own]);
    assert_eq!(said(&asked(&project, system)[0]), ["system: Mind Ada.", "user: How is Ada?"]);
}

#[test]
fn variants_put_their_words_around_the_prompt() {
    let project =
        Project::new().cases(&[plain()]).file("chatty.txt", "Dear model!\n{{ prompt }}\n");
    let runner = r#"
system = "Be exact."
[[runners.prompts]]
name = "terse"
template = "Briefly. {{ prompt }}"
[[runners.prompts]]
name = "chatty"
file = "chatty.txt"
system = "Chat about {{ id }}."
settings = { temperature = 1.0, max_tokens = 99 }
[[runners.prompts]]
name = "talk"
messages = [
  { role = "user", content = "Do you know {{ name }}?" },
  { role = "assistant", content = "Yes." },
  { role = "user", content = "{{ prompt }}" },
]
"#;
    let all = asked(&project, runner);
    assert_eq!(said(&all[0]), ["system: Be exact.", "user: Briefly. How is Ada?"]);
    assert_eq!(said(&all[1])[0], "system: Chat about a.");
    assert_eq!(said(&all[1])[1].trim_end(), "user: Dear model!\nHow is Ada?");
    assert_eq!(
        said(&all[2]),
        ["system: Be exact.", "user: Do you know Ada?", "assistant: Yes.", "user: How is Ada?"]
    );
    assert_eq!((all[1].sampling.max_tokens, all[0].sampling.max_tokens), (Some(99), None));
}

#[test]
fn what_a_case_wants_goes_before_what_its_runner_wants() {
    let mut own = plain();
    own["tools"] = json!([{ "name": "clock", "parameters": { "type": "object" } }]);
    own["tool_choice"] = json!("required");
    own["settings"] = json!({ "temperature": 0.25 });
    own["response_format"] = json!("json");
    let mut second = plain();
    second["id"] = json!("b");
    let tools = json!([{ "name": "watch", "parameters": { "type": "object" } }]).to_string();
    let project = Project::new().cases(&[own, second]).file("tools.json", &tools);
    let runner = "tools = \"tools.json\"\ntool_choice = \"auto\"\n[[runners.prompts]]\nname = \"v\"\n\
                  template = \"{{ prompt }}\"\nsettings = { temperature = 0.75, seed = 4 }";
    let all = asked(&project, runner);
    let names: Vec<&str> = all.iter().map(|it| it.tools[0].name.as_str()).collect();
    assert_eq!(names, ["clock", "watch"]);
    assert_eq!(all[0].tool_choice, Some(ToolChoice::Required));
    assert_eq!(all[1].tool_choice, Some(ToolChoice::Auto));
    assert!(all[0].response_format.is_some() && all[1].response_format.is_none());
    let temperatures: Vec<Option<f64>> = all.iter().map(|it| it.sampling.temperature).collect();
    assert_eq!(temperatures, [Some(0.25), Some(0.75)]);
    assert_eq!((all[0].sampling.seed, all[1].sampling.seed), (Some(4), Some(4)));
}

const TRAIN: &str = r#"{"id": "t1", "prompt": "1 + 1?", "expected_response": "2"}
{"id": "t2", "prompt": "{{ a }} + {{ b }}?", "prompt_vars": {"a": 2, "b": 2}, "expected_response": ["4", "four"]}
{"id": "t3", "prompt": "3 + 3?", "expected_response": 6}
"#;

#[test]
fn examples_stand_before_the_prompt_and_never_the_case_itself() {
    let case =
        |id: &str, prompt: &str| json!({ "id": id, "prompt": prompt, "expected_response": "x" });
    let cases = [case("new", "5 + 5?"), case("t1", "6 + 6?"), case("same", "2 + 2?")];
    let project = Project::new().cases(&cases).file("train.jsonl", TRAIN);
    let runner = "examples = \"train.jsonl\"\nexamples_k = 2\nprompt = \"Q: {{ prompt }}\"\nsystem = \"Add\"";
    let all = asked(&project, runner);
    let first = ["user: Q: 1 + 1?", "assistant: 2"];
    let second = ["user: Q: 2 + 2?", "assistant: 4"];
    let third = ["user: Q: 3 + 3?", "assistant: 6"];
    let of = |pairs: [[&'static str; 2]; 2], last: &'static str| {
        [&["system: Add"][..], &pairs.concat(), &[last]].concat()
    };
    assert_eq!(said(&all[0]), of([first, second], "user: Q: 5 + 5?"));
    assert_eq!(said(&all[1]), of([second, third], "user: Q: 6 + 6?"));
    assert_eq!(said(&all[2]), of([first, third], "user: Q: 2 + 2?"));
    let inside = "examples = \"train.jsonl\"\nexamples_k = 2\nprompt = \"{% for it in examples %}{{ it.prompt }} {{ it.answer }}, {% endfor %}{{ prompt }}\"";
    assert_eq!(said(&asked(&project, inside)[0]), ["user: 1 + 1? 2, 2 + 2? 4, 5 + 5?"]);
}

#[test]
fn a_prompt_that_makes_messages_is_a_conversation() {
    let project = Project::new().cases(&[plain()]);
    let made = r#"[{"role": "user", "content": {{ prompt | tojson }}}, {"role": "assistant", "content": "Well."}, {"role": "user", "content": "So?"}]"#;
    let runner = format!(
        "system = \"Be brief.\"\n[[runners.prompts]]\nname = \"v\"\nmessages = '''{made}'''"
    );
    let expected = ["system: Be brief.", "user: How is Ada?", "assistant: Well.", "user: So?"];
    assert_eq!(said(&asked(&project, &runner)[0]), expected);
}

#[test]
fn cases_that_do_not_fit_their_runner_are_refused() {
    let check = |case: Value, runner: &str, expected: &[(&str, &str)]| {
        let problems = Project::new().cases(std::slice::from_ref(&case)).problems(&suite(runner));
        assert_eq!(errors(&problems), expected, "{case}");
    };
    let talk = json!({ "id": "a", "messages": [
        { "role": "user", "content": "Hi" }, { "role": "assistant", "content": "Ho" },
        { "role": "user", "content": "So?" },
    ] });
    check(talk.clone(), "", &[]);
    let message = "the runner has a `prompt`, which a case with `messages` has no place for";
    check(talk.clone(), "prompt = \"{{ prompt }}!\"", &[("bad-case", message)]);
    let message = "variant `v` has no place for a case with `messages`";
    let variant = "[[runners.prompts]]\nname = \"v\"\ntemplate = \"{{ prompt }}!\"";
    check(talk, variant, &[("bad-case", message)]);
    let mut own = plain();
    own["system"] = json!("Mine.");
    let message = "variant `v` has no place for a case with `system`";
    let first = "[[runners.prompts]]\nname = \"v\"\nmessages = [{ role = \"system\", content = \"S\" }, { role = \"user\", content = \"{{ prompt }}\" }]";
    check(own, first, &[("bad-case", message)]);
    let vars = json!({ "id": "a", "prompt_vars": { "name": "Ada" } });
    check(vars.clone(), "prompt = \"How is {{ name }}?\"", &[]);
    let message = "the case has no `prompt`, and its runner has no template to ask with";
    check(vars, "", &[("bad-case", message)]);
}
