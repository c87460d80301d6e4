//! A folder with files in it, and the program to run there.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// A folder that goes away with the test.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds a file with a value in each line.
    pub(crate) fn lines(self, name: &str, values: &[Value]) -> Self {
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        self.file(name, lines.join("\n"))
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_probity"));
        command.args(words).current_dir(self.folder.path()).env_remove("NO_COLOR");
        command
    }

    /// Runs the program with an empty standard input.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, "")
    }

    /// The exit code of the program when nobody reads its standard output.
    pub(crate) fn deserted(&self, words: &[&str]) -> Option<i32> {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        command.status().unwrap().code()
    }

    pub(crate) fn run_with(&self, words: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // The program may answer before it has read everything, or not read at all.
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// Exit code and both streams, as one text for a snapshot.
    pub(crate) fn shown(&self, words: &[&str]) -> String {
        self.show(&self.run(words))
    }

    pub(crate) fn shown_with(&self, words: &[&str], input: &str) -> String {
        self.show(&self.run_with(words, input))
    }

    fn show(&self, output: &Output) -> String {
        let mut text = format!("exit {}\n", output.status.code().unwrap_or(-1));
        for (name, bytes) in [("out", &output.stdout), ("err", &output.stderr)] {
            if !bytes.is_empty() {
                let _ = write!(text, "--- {name}\n{}", String::from_utf8_lossy(bytes));
            }
        }
        text.replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}
