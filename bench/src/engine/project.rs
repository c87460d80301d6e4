//! A folder with a suite and its cases, made for one run and removed after it.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use tempfile::TempDir;

use super::server::Server;
use crate::cost::{self, Ran};

/// Calls in flight, wherever nothing else is said.
pub(super) const IN_FLIGHT: usize = 64;

pub(super) struct Project {
    folder: TempDir,
    cases: usize,
}

impl Project {
    /// Cases that each server is asked, 64 at a time.
    pub(super) fn new(cases: usize, servers: &[(&str, &Server)]) -> io::Result<Self> {
        let mut backends = String::new();
        for (name, server) in servers {
            let url = &server.url;
            let _ = write!(
                backends,
                "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n\
                 model = \"fake-small\"\nmax_concurrency = {IN_FLIGHT}\n"
            );
        }
        Self::with(cases, IN_FLIGHT * servers.len(), &backends)
    }

    /// Cases whose answers come from a file in the folder.
    pub(super) fn replaying(cases: usize, recording: &[u8]) -> io::Result<Self> {
        let backend = "[backends.fake]\nkind = \"replay\"\nfile = \"answers.jsonl\"\n";
        let project = Self::with(cases, IN_FLIGHT, backend)?;
        fs::write(project.path().join("answers.jsonl"), recording)?;
        Ok(project)
    }

    fn with(cases: usize, in_flight: usize, backends: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let suite = format!(
            "max_concurrency = {in_flight}\n{backends}\
             [[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n"
        );
        fs::write(folder.path().join("probity.toml"), suite)?;
        let mut file = BufWriter::new(File::create(folder.path().join("cases.jsonl"))?);
        for at in 0..cases {
            writeln!(
                file,
                r#"{{"id":"case-{at}","prompt":"Return the number {at}","expected_response":"{at}"}}"#
            )?;
        }
        file.flush()?;
        Ok(Self { folder, cases })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the suite, and makes sure that it did what is measured.
    pub(super) fn run(&self, probity: &Path, more: &[&str], calls: usize) -> io::Result<Ran> {
        let words: Vec<&str> = ["run", "--porcelain"].iter().chain(more).copied().collect();
        let ran = cost::of(probity, self.path(), &words)?;
        let made = (ran.key("TOTAL_CALLS"), ran.key("ABORTED"));
        match made == (Some(&calls.to_string()), Some("0")) {
            true => Ok(ran),
            false => Err(io::Error::other(format!("not {calls} calls: {}", ran.output))),
        }
    }

    /// Bytes that the store takes for each case.
    pub(super) fn stored_bytes(&self) -> io::Result<f64> {
        let mut bytes = 0;
        for file in fs::read_dir(self.path().join(".probity"))? {
            bytes += file?.metadata()?.len();
        }
        Ok(super::float(usize::try_from(bytes).unwrap_or(usize::MAX)) / super::float(self.cases))
    }
}
