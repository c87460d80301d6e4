//! Three servers, of which one is lost.

use std::{net::TcpListener, time::Duration};

use probity_testkit::{FakeServer, Latency, Script};

use crate::lab::{Going, Nats, PATIENCE, Worker, project, stored, wait_until};

/// Ports that are free now. The server does not say which one it chose for the others of its cluster.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|it| it.local_addr().unwrap().port()).collect()
}

fn cluster() -> Vec<Nats> {
    let ports = free_ports(3);
    let routes: Vec<String> =
        ports.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
    let routes = routes.join(", ");
    ports
        .iter()
        .enumerate()
        .map(|(at, port)| {
            Nats::with(&format!(
                "server_name: \"n{at}\"\ncluster {{ name: \"lab\", listen: \"127.0.0.1:{port}\", \
                 routes: [{routes}] }}"
            ))
        })
        .collect()
}

#[test]
fn a_run_goes_on_when_one_of_three_servers_is_lost() {
    let latency = Latency::fixed(Duration::from_millis(100));
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let mut servers = cluster();
    let url = servers.iter().map(Nats::url).collect::<Vec<_>>().join(",");
    let project = project(150, &server, "");
    // The servers have to find each other before they keep anything.
    wait_until("the cluster has a leader", || {
        let checked = project.run(&["doctor", "--workers", &url]);
        checked.status.success()
    });
    let _workers: Vec<Worker> =
        (1..=2).map(|at| Worker::start(&url, &format!("w{at}"), &["-j", "4"])).collect();
    let words = ["-j", "8", "--workers", &url, "--nats-replicas", "3", "--ack-wait", "3s"];
    let going = Going::start(&project, &words);
    assert!(server.wait_until(|seen| seen.asked >= 30, PATIENCE), "{}", project.read("err"));
    servers[0].kill();
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=150\n") && printed.contains("ABORTED=0\n"), "{printed}");
    let cases = stored(&project);
    assert_eq!(cases.len(), 150);
    assert!(cases.iter().all(|it| it["verdict"] == "pass"));
}
