//! Configurations of other tools: what is sent of them, and what is read for them.

use std::{fs, io, os::unix::fs::symlink};

use super::{Check, Trial, said};
use crate::campaign::room::walk;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("21: imports send what stands for something else", imported),
    ("21: templates in values are sent as they stand", values),
    ("21: what nothing is left of takes its notes along", notes),
    ("37: an import reads any file", outside),
    ("37: an import follows links", links),
];

fn imported(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.room.write("x.txt", "hello from a file\n")?;
    trial.room.write("chat.json", "[{\"role\":\"user\",\"content\":\"Hi {{x}}\"}]")?;
    let config = "prompts: ['Say {{x}}', 'file://chat.json']\nproviders: [echo]\ntests:\n  \
                  - vars: { x: 'file://x.txt', rows: [{ a: 1 }, { a: 2 }] }\n";
    trial.room.write("promptfooconfig.yaml", config)?;
    let ran = trial.run(&["promptfooconfig.yaml"])?;
    trial.expect(ran.key("N_CASES") == Some("2"), || {
        format!("{:?} cases, {}", ran.key("N_CASES"), ran.tail())
    });
    for case in trial.stored()? {
        let sent = case["prompt"].as_str().unwrap_or_default();
        let is_filled =
            sent.contains("hello from a file") && !sent.contains("{{") && !sent.contains("role");
        trial.expect(is_filled, || format!("{sent:?} was sent"));
    }
    Ok(())
}

fn values(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.room.write("x.txt", "from a file\n")?;
    let config = "prompts: ['Say {{x}}, {{y}}!']\nproviders: [echo]\ntests:\n  \
                  - vars: { x: 'file://x.txt', y: 'dear {{name}}', name: Ada }\n";
    trial.room.write("promptfooconfig.yaml", config)?;
    let ran = trial.run(&["promptfooconfig.yaml"])?;
    let prompt = trial.first()?["prompt"].clone();
    trial.expect(prompt == "Say from a file, dear Ada!", || {
        format!("{prompt} was sent, {}", ran.tail())
    });
    Ok(())
}

fn notes(trial: &mut Trial<'_>) -> io::Result<()> {
    let config = "prompts: ['Say {{x}}']\nproviders: [echo]\ntests:\n  - vars: { x: 'package:@mine/values' }\n";
    trial.room.write("promptfooconfig.yaml", config)?;
    let ran = trial.room.run(&["import", "promptfooconfig.yaml", "-o", "out"])?;
    trial.code(&ran, 2);
    let told = said(&ran);
    trial.expect(told.contains("a package that makes a value"), || told.clone());
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

fn links(trial: &mut Trial<'_>) -> io::Result<()> {
    let secret = trial.room.root().join("home/secret.txt");
    fs::write(&secret, "the secret of the home")?;
    trial.room.write("in/promptfooconfig.yaml", "prompts: ['Say {{x}}', 'file://prompt.txt']\nproviders: [echo]\ntests:\n  - vars: { x: 'file://value.txt' }\n  - vars: { x: 'file://folder/secret.txt' }\n  - vars: { x: carried over }\n")?;
    symlink(&secret, trial.room.path("in/prompt.txt"))?;
    symlink(&secret, trial.room.path("in/value.txt"))?;
    symlink(trial.room.root().join("home"), trial.room.path("in/folder"))?;
    trial.room.run(&["import", "in/promptfooconfig.yaml", "-o", "out", "--lossy"])?;
    let mut made = String::new();
    walk(&trial.room.path("out"), &mut |path| {
        made.push_str(&fs::read_to_string(path).unwrap_or_default());
    });
    trial.expect(made.contains("carried over"), || "nothing was imported".to_owned());
    trial.expect(!made.contains("the secret of the home"), || "a link was followed".to_owned());
    Ok(())
}
