//! Agents, as far as nothing is executed: what they are asked, and what is refused.

use serde_json::{Value, json};

use crate::project::{Project, errors};

fn suite(more: &str) -> String {
    format!(
        "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\nkind = \"agent\"\nbackends = [\"e\"]\n\
         dataset = \"cases.jsonl\"\n{more}\n"
    )
}

fn task() -> Value {
    json!({ "id": "task", "prompt": "How many lines has {{ file }}?", "prompt_vars": { "file": "words" },
            "assert": [{ "type": "contains", "value": "3" }] })
}

#[test]
fn an_agent_is_told_where_it_is_and_what_it_may_use() {
    let asked = |more: &str, case: Value| {
        let read = Project::new().cases(&[case]).read(&suite(more));
        let plan = read.plan();
        let mut found = None;
        plan.lanes[0].requests(|_, request| found = Some(request));
        (plan.lanes[0].calls, found.unwrap())
    };
    let (calls, native) = asked("max_steps = 5\nsystem = \"You work for Ada.\"", task());
    assert_eq!((calls.answers, calls.steps), (1, 4));
    assert_eq!(native.prompt(), "How many lines has words?");
    assert_eq!(native.messages.len(), 2);
    let system = native.system().unwrap();
    assert!(system.contains("You work for Ada."), "{system}");
    let names: Vec<&str> = native.tools.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"bash"), "{names:?}");
    let (_, text) = asked("protocol = \"text\"", task());
    assert!(text.tools.is_empty());
    assert!(text.system().unwrap().contains("ANSWER:"), "{:?}", text.system());
    // The world says where it works.
    let (_, usual) = asked("", task());
    assert!(usual.system().unwrap().contains("/home/ada/nothing"), "{:?}", usual.system());
    let mut own = task();
    own["execution"] = json!({ "world": "texts", "run": "true" });
    let (_, own) = asked("", own);
    assert!(own.system().unwrap().contains("/home/ada/texts"), "{:?}", own.system());
}

#[test]
fn other_limits_or_another_world_are_another_task() {
    let input = |more: &str| {
        let read = Project::new().cases(&[task()]).read(&suite(more));
        let plan = read.plan();
        let mut found = None;
        plan.lanes[0].inputs(&plan.backends[0], |_, input| found = Some(input));
        found.unwrap()
    };
    assert_eq!(input("max_steps = 5"), input("max_steps = 5"));
    assert_ne!(input("max_steps = 5"), input("max_steps = 6"));
    assert_ne!(input(""), input("world = \"texts\""));
}

#[test]
fn what_an_agent_has_no_place_for_is_refused() {
    let check = |key: &str, value: Value, path: &str| {
        let mut case = task();
        case[key] = value;
        let problems = Project::new().cases(std::slice::from_ref(&case)).problems(&suite(""));
        let found = errors(&problems);
        assert!(found.iter().any(|it| it.0 == "bad-case" && it.1.contains(path)), "{found:?}");
    };
    let none =
        |key: &str| format!("an agent has the tools of its runner and one task, and no `{key}`");
    check("tool_results", json!([]), &none("tool_results"));
    check("tool_choice", json!("auto"), &none("tool_choice"));
    check("response_format", json!("json"), &none("response_format"));
    check("tools", json!([{ "name": "x", "parameters": {} }]), &none("tools"));
    check("user", json!({ "instructions": "x" }), &none("user"));
    check("execution", json!({ "worlds": ["texts", "empty"], "run": "true" }), "one world");
    check("execution", json!({ "file": "x.py", "run": "true" }), "no `file` for its reply");
    let problems = Project::new().cases(&[task()]).problems(&suite(""));
    assert_eq!(errors(&problems), []);
}
