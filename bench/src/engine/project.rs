//! A folder with a suite and its cases, made for one run and removed after it.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use tempfile::TempDir;

use super::server::Server;
use crate::cost::{self, Ran};

/// Calls in flight, wherever nothing else is said.
pub(crate) const IN_FLIGHT: usize = 64;

pub(crate) struct Project {
    folder: TempDir,
    cases: usize,
}

impl Project {
    /// Cases that each server is asked, 64 at a time.
    pub(crate) fn new(cases: usize, servers: &[(&str, &Server)]) -> io::Result<Self> {
        let backends: String =
            servers.iter().map(|(name, server)| backend(name, IN_FLIGHT, server)).collect();
        Self::with(cases, IN_FLIGHT * servers.len(), &backends)
    }

    /// Cases whose answers come from a file in the folder.
    pub(crate) fn replaying(cases: usize, recording: &[u8]) -> io::Result<Self> {
        let backend = "[backends.fake]\nkind = \"replay\"\nfile = \"answers.jsonl\"\n";
        let project = Self::with(cases, IN_FLIGHT, backend)?;
        fs::write(project.path().join("answers.jsonl"), recording)?;
        Ok(project)
    }

    /// Cases that one server is asked, so many at a time.
    pub(crate) fn in_flight(cases: usize, most: usize, server: &Server) -> io::Result<Self> {
        Self::with(cases, most, &backend("fake", most, server))
    }

    /// Runners that ask one server the same few cases each.
    pub(crate) fn runners(runners: usize, cases: usize, server: &Server) -> io::Result<Self> {
        let mut suite = head(IN_FLIGHT, &backend("fake", IN_FLIGHT, server));
        for at in 0..runners {
            suite.push_str(&runner(&format!("numbers-{at}")));
        }
        let project = Self::empty(runners * cases, &suite)?;
        project.write_numbers(cases)?;
        Ok(project)
    }

    /// Cases with a text of so many bytes, which is also the answer.
    pub(crate) fn long(cases: usize, bytes: usize, server: &Server) -> io::Result<Self> {
        let suite = head(IN_FLIGHT, &backend("fake", IN_FLIGHT, server)) + &runner("texts");
        let project = Self::empty(cases, &suite)?;
        let word = "0123456789abcdef".repeat(bytes / 16);
        project.write_cases(cases, |at| {
            format!(
                r#"{{"id":"case-{at}","prompt":"Return {at}{word}","assert":[{{"type":"contains","value":"{at}0123"}}]}}"#
            )
        })?;
        Ok(project)
    }

    fn with(cases: usize, in_flight: usize, backends: &str) -> io::Result<Self> {
        let project = Self::empty(cases, &(head(in_flight, backends) + &runner("numbers")))?;
        project.write_numbers(cases)?;
        Ok(project)
    }

    /// A folder with a suite and without its cases.
    fn empty(cases: usize, suite: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("probity.toml"), suite)?;
        Ok(Self { folder, cases })
    }

    fn write_numbers(&self, cases: usize) -> io::Result<()> {
        self.write_cases(cases, |at| {
            format!(
                r#"{{"id":"case-{at}","prompt":"Return the number {at}","expected_response":"{at}"}}"#
            )
        })
    }

    fn write_cases(&self, cases: usize, case: impl Fn(usize) -> String) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(self.path().join("cases.jsonl"))?);
        for at in 0..cases {
            writeln!(file, "{}", case(at))?;
        }
        file.flush()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the suite, and makes sure that it did what is measured.
    pub(crate) fn run(&self, probity: &Path, more: &[&str], calls: usize) -> io::Result<Ran> {
        let words: Vec<&str> = ["run", "--porcelain"].iter().chain(more).copied().collect();
        let ran = cost::of(probity, self.path(), &words)?;
        let made = (ran.key("TOTAL_CALLS"), ran.key("ABORTED"));
        match made == (Some(&calls.to_string()), Some("0")) {
            true => Ok(ran),
            false => Err(io::Error::other(format!("not {calls} calls: {}", ran.output))),
        }
    }

    /// Bytes that the store takes for each case.
    pub(crate) fn stored_bytes(&self) -> io::Result<f64> {
        let mut bytes = 0;
        for file in fs::read_dir(self.path().join(".probity"))? {
            bytes += file?.metadata()?.len();
        }
        Ok(super::float(usize::try_from(bytes).unwrap_or(usize::MAX)) / super::float(self.cases))
    }
}

fn head(in_flight: usize, backends: &str) -> String {
    format!("max_concurrency = {in_flight}\n{backends}")
}

fn backend(name: &str, in_flight: usize, server: &Server) -> String {
    let url = &server.url;
    format!(
        "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n\
         model = \"fake-small\"\nmax_concurrency = {in_flight}\n"
    )
}

fn runner(name: &str) -> String {
    format!("[[runners]]\nname = \"{name}\"\ndataset = \"cases.jsonl\"\n")
}
