//! Worlds that see more of the host than others.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use probity_sandbox::{Address, Command, Execution, Failure, Gateway, Limits, Openings};

use crate::common::{Playground, as_nobody, lines, sandbox, text};

/// A folder of the host that everybody may look into.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    folder
}

fn run(openings: &Openings, command: &str) -> Result<Execution, Failure> {
    let world = Playground::new("open", |_| {});
    let mut session = sandbox().enter_with(&world.prepared, openings)?;
    session.execute(&Command::Shell(command.to_owned()), None, &Limits::default())
}

fn paths(paths: &[&Path]) -> Openings {
    Openings { paths: paths.iter().map(PathBuf::from).collect(), gateway: None }
}

#[test]
fn paths_of_the_host_are_found_where_they_are_and_can_only_be_read() {
    let folder = folder();
    let (tool, inner) = (folder.path().join("tool"), folder.path().join("lib/inner"));
    fs::create_dir_all(&inner).expect("a folder");
    fs::write(inner.join("data"), "of the host\n").expect("a file");
    fs::write(&tool, "#!/bin/sh\ncat \"$(dirname \"$0\")/lib/inner/data\"\n").expect("a file");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("a mode");
    let hidden = folder.path().join("hidden");
    fs::write(&hidden, "x").expect("a file");
    let (tool, inner, hidden) = (tool.display(), inner.display(), hidden.display());
    let command = format!(
        "{tool}; ls -d {hidden}; echo evil >> {tool}; rm -rf {inner}; touch {inner}/new; echo made > here; :"
    );
    let openings = paths(&[&folder.path().join("tool"), &folder.path().join("lib/inner")]);
    let execution = run(&openings, &command).expect("an execution");
    assert_eq!(text(&execution.stdout.bytes), "of the host\n", "{execution:?}");
    assert_eq!(lines(&execution.changes), ["+ /home/user/here"]);
    let kept = fs::read_to_string(folder.path().join("lib/inner/data"));
    assert_eq!(kept.expect("a file"), "of the host\n");
}

#[test]
fn paths_that_are_not_there_are_named() {
    let failure = run(&paths(&[Path::new("/nowhere/at/all")]), "true").expect_err("no such path");
    let Failure::Setup(why) = failure else { panic!("{failure:?}") };
    assert!(why.starts_with("sharing /nowhere/at/all: No such file"), "{why}");
    let failure = run(&paths(&[Path::new("/sys/kernel")]), "true").expect_err("no such path");
    assert!(failure.to_string().ends_with("nothing under /sys can be shared"), "{failure}");
    let tools = [Path::new("/usr/bin"), Path::new("/bin/sh")];
    run(&paths(&tools), "test -x /bin/sh").expect("tools are there anyway");
    let failure = run(&paths(&[Path::new("relative")]), "true").expect_err("no such path");
    assert!(matches!(failure, Failure::Setup(_)));
}

/// Answers one connection with what it was sent, and says what that was.
fn echo(listener: TcpListener) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("a text");
        stream.write_all(said.to_uppercase().as_bytes()).expect("an answer");
        said
    })
}

fn listen() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    (listener, Address { host: "127.0.0.1".to_owned(), port })
}

/// Sends a text to a port of the world's own machine, and shows what comes back.
fn send(port: u16, said: &str) -> String {
    format!(
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => {port}) or do {{ print qq(no: $!\\n); exit }}; print $s qq({said}); $s->shutdown(1); print while <$s>; print qq(\\n)'"
    )
}

#[test]
fn a_gateway_leads_to_its_server_and_nothing_else_is_reached() {
    let ((server, address), (other, forbidden)) = (listen(), listen());
    let gateway = Gateway { server: Some(address.clone()), tunnels: Vec::new() };
    let openings = Openings { gateway: Some(gateway), ..Openings::default() };
    let asked = echo(server);
    let tunnel = send(3128, &format!("CONNECT {forbidden} HTTP/1.1\\r\\n\\r\\n"));
    let datagram = "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); print send(S, q(x), 0, sockaddr_in(53, inet_aton(q(8.8.8.8)))) ? q(out) : $!'".to_owned();
    let command =
        [send(3128, "hello"), send(forbidden.port, "x"), send(address.port, "x"), tunnel, datagram]
            .join("; ");
    let execution = run(&openings, &command).expect("an execution");
    let said = text(&execution.stdout.bytes);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[..2], ["HELLO", "no: Permission denied"], "{said:?}");
    assert!(said[2].starts_with("no: "), "{said:?}");
    assert!(said[3].starts_with("HTTP/1.1 403 "), "{said:?}");
    assert_eq!(said.last(), Some(&"Network is unreachable"), "{said:?}");
    assert_eq!(asked.join().expect("a server"), "hello");
    other.set_nonblocking(true).expect("a listener");
    assert!(other.accept().is_err(), "somebody came");
}

#[test]
fn a_gateway_of_an_ordinary_user_leads_to_its_server() {
    as_nobody("openings::a_gateway_leads_to_its_server_and_nothing_else_is_reached");
}

#[test]
fn a_tunnel_leads_where_it_may() {
    let (server, address) = listen();
    let gateway = Gateway { server: None, tunnels: vec![address.clone()] };
    let openings = Openings { gateway: Some(gateway), ..Openings::default() };
    let asked = echo(server);
    let command = send(3128, &format!("CONNECT {address} HTTP/1.1\\r\\n\\r\\nhello"));
    let execution = run(&openings, &command).expect("an execution");
    let said = text(&execution.stdout.bytes);
    assert_eq!(said, "HTTP/1.1 200 Connection established\r\n\r\nHELLO\n", "{execution:?}");
    assert_eq!(asked.join().expect("a server"), "hello");
}

#[test]
fn without_a_gateway_there_is_no_network_at_all() {
    let world = Playground::new("closed", |_| {});
    let execution = world.shell(&send(3128, "hello"));
    assert!(text(&execution.stdout.bytes).starts_with("no: "), "{execution:?}");
}
