//! Programs in the sandbox. They find a world, their own files and the way to their API there, and nothing else.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    io::Read as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use probity_core::execution::{Executed, ExecutionCall, WorldRef};

use probity_load::suite::{BackendConfig, HostPort, SandboxedProgram};
use probity_sandbox::{
    Address, Command, Execution, Failure, Gateway, Limits, Openings, Stopper, World, execution,
    world::Prepared,
};

use super::{ProgramError, Surroundings, Tool, environment};
use crate::{
    backend::address,
    process::{self, Count, End, Finished, NoProgram, Stdin},
    sandbox::{Ground, Left, world_of},
};

/// The world of a program whose suite names none.
const EMPTY: &str = "empty";

/// Certificates of the host, which programs trust that bring none.
const CERTIFICATES: [&str; 2] = ["/etc/ssl/certs", "/etc/pki"];

/// A program that runs in the sandbox.
#[derive(Debug)]
pub(super) struct Sandboxed {
    ground: Arc<Ground>,
    world: World,
    openings: Openings,
    /// What the files are called that it keeps for itself.
    own: Option<&'static str>,
}

/// What came of a program.
pub(super) struct Came {
    /// How it ended.
    pub(super) finished: Finished,
    /// How long it took, where that is not all the time that passed.
    pub(super) took: Option<Duration>,
    /// What it left behind in its world.
    pub(super) left: Option<Result<Executed, String>>,
}

/// The way from a world to an API.
#[derive(Debug, Default, PartialEq, Eq)]
struct Way {
    gateway: Gateway,
    /// The address of the API as the world sees it.
    base_url: Option<String>,
}

impl Sandboxed {
    /// The sandbox that the suite asks for, and what it makes of the settings of the backend.
    pub(super) fn new(
        tool: Tool,
        config: &BackendConfig,
        surroundings: &Surroundings,
    ) -> Result<Option<(Self, BackendConfig)>, ProgramError> {
        let Some(wanted) = &config.sandbox else { return Ok(None) };
        let failed = |why: String| ProgramError::NoSandbox { name: config.name.clone(), why };
        let SandboxedProgram { world, paths, reach } = wanted;
        let empty = || WorldRef::Named(EMPTY.to_owned());
        let world = world_of(&world.clone().unwrap_or_else(empty)).map_err(failed)?;
        let variable = server_variable(tool).and_then(|it| surroundings.env.get(OsStr::new(it)));
        let variable = variable.and_then(|it| it.to_str()).filter(|it| !it.is_empty());
        let Way { mut gateway, base_url } =
            way(tool, config.base_url.as_deref().or(variable)).map_err(failed)?;
        gateway.tunnels.extend(reach.iter().map(address_of));
        let trusted = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];
        let trusted = trusted.iter().filter_map(|it| surroundings.env.get(OsStr::new(it)));
        let certificates = CERTIFICATES.iter().map(PathBuf::from).chain(trusted.map(PathBuf::from));
        let certificates = certificates.filter(|it| it.is_absolute() && it.exists());
        let paths = paths.iter().map(PathBuf::from).chain(certificates).collect();
        let openings = Openings { paths, gateway: Some(gateway) };
        let ground = Arc::new(Ground::new(&surroundings.env));
        let config = BackendConfig { base_url, ..config.clone() };
        Ok(Some((Self { ground, world, openings, own: own_name(tool) }, config)))
    }

    /// Runs a program to its end, and executes in its world what is called for then. If the future is dropped, it is ended
    /// in the background.
    pub(super) async fn run(
        &self,
        command: process::Command,
        limits: process::Limits,
        call: Option<ExecutionCall>,
    ) -> Result<Came, NoProgram> {
        let process::Command { program, args, env, stdin, room } = command;
        let failed = |why: String| NoProgram::NoSandbox { path: program.clone(), why };
        let (program, own) = own_files(&program, &env).map_err(failed)?;
        let words = args.iter().map(|it| it.to_string_lossy().into_owned());
        let argv = std::iter::once(program.display().to_string()).chain(words).collect();
        let command = command_of(argv, stdin).map_err(|error| failed(error.to_string()))?;
        let mut openings = self.openings.clone();
        openings.paths.extend(own);
        let stop = Arc::new(Stop::default());
        let _end = EndOnDrop(Arc::clone(&stop));
        let (ground, world, count) = (Arc::clone(&self.ground), self.world.clone(), Count::up());
        let own_name = self.own;
        let work = move || {
            let failed = |why: String| NoProgram::NoSandbox { path: program.clone(), why };
            let unused = |failure| unused(&program, failure);
            let prepared = match &call {
                Some(call) => ground.place_of(call, &world),
                None => ground.tree(&world),
            };
            let prepared = prepared.map_err(failed)?;
            let variables = variables(prepared.variables.clone(), &env, &openings);
            let entered = Prepared { variables, ..prepared.clone() };
            let sandbox = ground.open().map_err(failed)?;
            let mut session = sandbox.enter_with(&entered, &openings).map_err(unused)?;
            stop.arm(session.stopper());
            let execution = session.execute(&command, None, &within(&limits)).map_err(unused)?;
            // Of what failed nothing is judged.
            let left = (execution.end == execution::End::Exit(0)).then(|| {
                let left = Left { prepared: &prepared, execution: &execution, program: own_name };
                ground.look_back(&mut session, &left, call.as_ref())
            });
            drop((session, room, count));
            let took = Some(Duration::from_micros(execution.took_us));
            Ok(Came { finished: finished(execution, limits.stdout), took, left })
        };
        let lost = |error| NoProgram::Lost(std::io::Error::other(error));
        tokio::task::spawn_blocking(work).await.map_err(lost)?
    }
}

/// Why a program did not run.
fn unused(program: &Path, failure: Failure) -> NoProgram {
    match failure {
        Failure::Died(_) => NoProgram::Lost(std::io::Error::other(failure)),
        Failure::World { .. } | Failure::Setup(_) => {
            NoProgram::NoSandbox { path: program.to_owned(), why: failure.to_string() }
        }
    }
}

/// Ends a session, also one that is about to begin.
#[derive(Debug, Default)]
struct Stop(Mutex<(bool, Option<Stopper>)>);

impl Stop {
    fn arm(&self, stopper: Stopper) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 {
            stopper.stop();
        }
        state.1 = Some(stopper);
    }

    fn stop(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        if let Some(stopper) = &state.1 {
            stopper.stop();
        }
    }
}

/// Ends a session that nobody waits for any more.
struct EndOnDrop(Arc<Stop>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What a program may use: enough for those that bring an engine for JavaScript, which reserve a lot of address space.
fn within(limits: &process::Limits) -> Limits {
    Limits {
        time: limits.time,
        cpu: limits.time.saturating_add(Duration::from_secs(1)),
        memory: 4 << 30,
        space: u64::MAX,
        disk: 1 << 30,
        file: 512 << 20,
        processes: 512,
        descriptors: 4096,
        output: limits.stdout as u64,
    }
}

fn finished(execution: Execution, most: usize) -> Finished {
    let Execution { end, stdout, stderr, changes: _, refused, .. } = execution;
    let mut errors = stderr.bytes;
    let mut note = |text: &str| {
        errors.extend_from_slice(format!("\n{text}\n").as_bytes());
    };
    let (end, status) = match end {
        execution::End::Exit(code) => {
            if code != 0 && !refused.is_empty() {
                note(&format!("the sandbox refused {}", refused.join(", ")));
            }
            (End::Itself, ExitStatus::from_raw((code & 0xff) << 8))
        }
        execution::End::Signal(signal) => (End::Itself, ExitStatus::from_raw(signal)),
        execution::End::TimedOut => (End::Time, ExitStatus::from_raw(9)),
        execution::End::OutOfMemory => {
            note("it was killed for its memory");
            (End::Itself, ExitStatus::from_raw(9))
        }
    };
    let end = if stdout.total > most as u64 { End::Output } else { end };
    Finished { end, status: Some(status), stdout: stdout.bytes, stderr: errors }
}

fn command_of(argv: Vec<String>, stdin: Stdin) -> std::io::Result<Command> {
    let stdin = match stdin {
        Stdin::Null => return Ok(Command::Argv(argv)),
        Stdin::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Stdin::File(mut file) => {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            text
        }
    };
    Ok(Command::Fed { argv, stdin })
}

/// The variables of the world, those of the program, and the way to the gateway.
fn variables(
    of_world: BTreeMap<String, String>,
    of_program: &BTreeMap<OsString, OsString>,
    openings: &Openings,
) -> BTreeMap<String, String> {
    let mut variables = of_world;
    for (name, value) in of_program {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if name == "PATH" {
            let path = variables.entry(name.to_owned()).or_default();
            path.push(':');
            path.push_str(value);
        } else if !environment::is_of_host(name) {
            variables.insert(name.to_owned(), value.to_owned());
        }
    }
    if openings.gateway.as_ref().is_some_and(|it| !it.tunnels.is_empty()) {
        for name in ["HTTPS_PROXY", "https_proxy"] {
            variables.insert(name.to_owned(), format!("http://{}", Gateway::ADDRESS));
        }
    }
    variables
}

/// Where a program really is, and the files that it consists of: the packages that it is one of, or it alone, and what runs
/// it if it is a script.
fn own_files(
    program: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let real = fs::canonicalize(program).map_err(|error| error.to_string())?;
    let packages = real.ancestors().filter(|it| it.file_name() == Some("node_modules".as_ref()));
    let mut files = vec![packages.last().unwrap_or(&real).to_owned()];
    let line = process::first_line(&real).unwrap_or_default();
    let mut words = line.iter().map(String::as_str);
    match (words.next(), words.next()) {
        (Some(env_program), Some(name)) if env_program.ends_with("/env") => {
            let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
            let found = process::find(name, path, Path::new("/"));
            files.push(found.map_err(|error| error.to_string())?);
        }
        (Some(absolute), _) => files.push(PathBuf::from(absolute)),
        (None, _) => {}
    }
    Ok((real, files))
}

/// The variable by which a program is told where its API is.
fn server_variable(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Claude => Some("ANTHROPIC_BASE_URL"),
        Tool::Copilot => Some("COPILOT_PROVIDER_BASE_URL"),
        Tool::Codex | Tool::Command => None,
    }
}

/// What the files of a program are called that it keeps for itself. Of others it is not known.
fn own_name(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Claude => Some("claude"),
        Tool::Codex => Some("codex"),
        Tool::Copilot => Some("copilot"),
        Tool::Command => None,
    }
}

/// Where the API of a program is if nobody says so.
fn usual_hosts(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Claude => &["api.anthropic.com"],
        Tool::Codex => &["api.openai.com", "chatgpt.com"],
        Tool::Copilot => &[
            "api.github.com",
            "api.githubcopilot.com",
            "api.individual.githubcopilot.com",
            "api.business.githubcopilot.com",
            "api.enterprise.githubcopilot.com",
        ],
        Tool::Command => &[],
    }
}

/// The way to an API. One that is not encrypted is the gateway itself; others are behind a tunnel.
fn way(tool: Tool, base_url: Option<&str>) -> Result<Way, String> {
    let Some(base_url) = base_url else {
        let https = |host: &&str| Address { host: (*host).to_owned(), port: 443 };
        let tunnels = usual_hosts(tool).iter().map(https).collect();
        return Ok(Way { gateway: Gateway { server: None, tunnels }, base_url: None });
    };
    let mut url = address::parse(base_url).ok_or("`base_url` is no address of a server")?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let api = Address { host, port };
    if url.scheme() == "https" {
        let gateway = Gateway { server: None, tunnels: vec![api] };
        return Ok(Way { gateway, base_url: Some(base_url.to_owned()) });
    }
    let (host, port) = Gateway::ADDRESS.split_once(':').unwrap_or_default();
    let moved = url.set_host(Some(host)).is_ok() && url.set_port(port.parse().ok()).is_ok();
    if !moved {
        return Err("`base_url` cannot be reached from the sandbox".to_owned());
    }
    let gateway = Gateway { server: Some(api), tunnels: Vec::new() };
    // As it was written: a path that is nothing but a slash was not there.
    let base_url = url.as_str().trim_end_matches('/').to_owned();
    Ok(Way { gateway, base_url: Some(base_url) })
}

fn address_of(address: &HostPort) -> Address {
    let HostPort { host, port } = address;
    Address { host: host.clone(), port: *port }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn tunnels(way: &Way) -> Vec<String> {
        way.gateway.tunnels.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_way_to_an_api_leads_there_and_nowhere_else() {
        let plain = way(Tool::Claude, Some("http://localhost:8080/v1/")).unwrap();
        assert_eq!(plain.base_url.as_deref(), Some("http://127.0.0.1:3128/v1"));
        let server = plain.gateway.server.as_ref().map(ToString::to_string);
        assert_eq!(server.as_deref(), Some("localhost:8080"));
        assert!(tunnels(&plain).is_empty());
        let hidden = way(Tool::Codex, Some("https://example.com/x")).unwrap();
        assert_eq!(hidden.base_url.as_deref(), Some("https://example.com/x"));
        assert_eq!(
            (tunnels(&hidden), &hidden.gateway.server),
            (vec!["example.com:443".to_owned()], &None)
        );
        assert_eq!(tunnels(&way(Tool::Claude, None).unwrap()), ["api.anthropic.com:443"]);
        assert_eq!(way(Tool::Command, None).unwrap(), Way::default());
        assert!(way(Tool::Claude, Some("ftp://h")).is_err());
    }

    #[test]
    fn a_program_brings_its_packages_and_what_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let package = root.join("lib/node_modules/tool/node_modules/inner/bin");
        fs::create_dir_all(&package).unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        let executable = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        executable(&package.join("cli.js"), "#!/usr/bin/env node\n");
        executable(&root.join("bin/node"), "\x7fELF");
        executable(&root.join("bin/alone"), "\x7fELF");
        symlink(package.join("cli.js"), root.join("bin/tool")).unwrap();
        let env = BTreeMap::from([("PATH".into(), root.join("bin").into())]);
        let (real, files) = own_files(&root.join("bin/tool"), &env).unwrap();
        assert_eq!(real, package.join("cli.js"));
        assert_eq!(files, [root.join("lib/node_modules"), root.join("bin/node")]);
        let (real, files) = own_files(&root.join("bin/alone"), &env).unwrap();
        assert_eq!((&real, &files), (&root.join("bin/alone"), &vec![root.join("bin/alone")]));
    }

    #[test]
    fn variables_of_the_host_stay_outside() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let world = BTreeMap::from([("HOME", "/home/ada"), ("PATH", "/usr/bin")].map(pair));
        let program = [
            ("HOME", "/root"),
            ("PATH", "/opt/node/bin"),
            ("HTTPS_PROXY", "http://proxy:1"),
            ("CLAUDE_CONFIG_DIR", "/root/.claude"),
            ("ANTHROPIC_API_KEY", "key"),
        ];
        let program = program.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let gateway = Some(Gateway::default());
        let openings = Openings { gateway, ..Openings::default() };
        let seen = variables(world.clone(), &program, &openings);
        let expected = [
            ("ANTHROPIC_API_KEY", "key"),
            ("HOME", "/home/ada"),
            ("PATH", "/usr/bin:/opt/node/bin"),
        ];
        assert_eq!(seen, BTreeMap::from(expected.map(pair)));
        let gateway = way(Tool::Claude, None).unwrap().gateway;
        let openings = Openings { gateway: Some(gateway), ..Openings::default() };
        let seen = variables(world, &program, &openings);
        assert_eq!(seen["HTTPS_PROXY"], "http://127.0.0.1:3128");
    }

    fn ended(end: execution::End, refused: &[&str], total: u64) -> Finished {
        let output =
            |text: &str, total| execution::Output { bytes: text.as_bytes().to_vec(), total };
        let execution = Execution {
            end,
            stdout: output("said", total),
            stderr: output("told", 4),
            changes: Vec::new(),
            ended: Vec::new(),
            refused: refused.iter().map(|it| (*it).to_owned()).collect(),
            took_us: 0,
            began: 0,
        };
        finished(execution, 10)
    }

    #[test]
    fn how_a_program_ended_in_the_sandbox_is_how_it_ended() {
        let told = |it: &Finished| String::from_utf8(it.stderr.clone()).unwrap();
        let well = ended(execution::End::Exit(0), &["mount"], 4);
        assert_eq!((well.end, well.code(), told(&well)), (End::Itself, Some(0), "told".to_owned()));
        assert_eq!(well.stdout, b"said");
        let refused = ended(execution::End::Exit(300), &["mount", "ptrace"], 4);
        assert_eq!(refused.code(), Some(44));
        assert_eq!(told(&refused), "told\nthe sandbox refused mount, ptrace\n");
        assert_eq!(told(&ended(execution::End::Exit(1), &[], 4)), "told");
        let killed = ended(execution::End::Signal(15), &[], 4);
        assert_eq!((killed.end, killed.signal().as_deref()), (End::Itself, Some("SIGTERM")));
        let slow = ended(execution::End::TimedOut, &[], 4);
        assert_eq!((slow.end, slow.code()), (End::Time, None));
        let large = ended(execution::End::OutOfMemory, &[], 4);
        assert_eq!(told(&large), "told\nit was killed for its memory\n");
        assert_eq!(large.signal().as_deref(), Some("SIGKILL"));
        // What was said beyond the limit is missing, which is told.
        assert_eq!(ended(execution::End::Exit(0), &[], 10).end, End::Itself);
        assert_eq!(ended(execution::End::Exit(0), &[], 11).end, End::Output);
    }

    #[test]
    fn a_program_in_the_sandbox_has_its_time_and_room_for_an_engine() {
        let limits = process::Limits::new(Duration::from_secs(9), Duration::ZERO);
        let Limits { time, cpu, memory, disk, file, output, .. } = within(&limits);
        assert_eq!((time, cpu), (Duration::from_secs(9), Duration::from_secs(10)));
        assert_eq!([memory, disk, file].map(|it| it / 1_048_576), [4096, 1024, 512]);
        assert_eq!(output, limits.stdout as u64);
    }

    #[test]
    fn what_a_program_reads_is_handed_over() {
        let argv = || vec!["cat".to_owned()];
        assert_eq!(command_of(argv(), Stdin::Null).unwrap(), Command::Argv(argv()));
        let fed = |text: &str| Command::Fed { argv: argv(), stdin: text.to_owned() };
        assert_eq!(command_of(argv(), Stdin::Bytes(b"hi".to_vec())).unwrap(), fed("hi"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "from a file").unwrap();
        let file = Stdin::File(fs::File::open(path).unwrap());
        assert_eq!(command_of(argv(), file).unwrap(), fed("from a file"));
    }
}
