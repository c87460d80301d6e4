//! What is handed out to set workers up is what it says it is.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The documents of a YAML file.
fn documents(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(deploy().join(name)).unwrap();
    text.split("\n---\n")
        .map(|it| {
            probity_load::dataset::parse_yaml(it).unwrap_or_else(|_| panic!("{name}")).to_json()
        })
        .collect()
}

#[track_caller]
fn check(schema: &Value, document: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|it| format!("{}: {it}", it.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// A table with these keys and no others; those in `required` have to be there.
#[expect(clippy::needless_pass_by_value, reason = "it is made where it is used")]
fn table(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object", "required": required, "properties": properties,
        "additionalProperties": false,
    })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
}

fn named() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

#[test]
fn the_compose_file_has_services_as_compose_knows_them() {
    let file = json!({ "type": "object", "required": ["path"], "properties": {
        "path": { "type": "string" }, "required": { "type": "boolean" } },
        "additionalProperties": false });
    let service = table(
        &["image"],
        json!({
            "image": { "type": "string", "minLength": 1 },
            "command": texts(), "ports": texts(), "volumes": texts(), "depends_on": texts(),
            "env_file": { "type": "array", "items": file },
            "stop_grace_period": { "type": "string", "pattern": "^([0-9]+(h|m|s))+$" },
            "restart": { "enum": ["no", "always", "on-failure", "unless-stopped"] },
        }),
    );
    let schema = table(
        &["services"],
        json!({
            "services": { "type": "object", "additionalProperties": service },
            "volumes": { "type": "object", "additionalProperties": { "type": "object" } },
        }),
    );
    let documents = documents("compose.yaml");
    check(&schema, &documents[0]);
    let worker = &documents[0]["services"]["worker"]["command"];
    assert_options(worker);
}

/// The words of a command are ones that the program knows.
fn assert_options(command: &Value) {
    let words: Vec<&str> = command.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(words[..2], ["probity", "worker"]);
    let help = Command::new(env!("CARGO_BIN_EXE_probity")).args(["worker", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    for word in words.iter().filter(|it| it.starts_with('-')) {
        assert!(help.contains(*word), "{word}");
    }
}

#[test]
fn the_manifests_are_objects_as_kubernetes_knows_them() {
    let meta = table(
        &["name"],
        json!({ "name": { "type": "string", "pattern": "^[a-z0-9-]{1,63}$" }, "labels": named() }),
    );
    let selector = table(&["matchLabels"], json!({ "matchLabels": named() }));
    let port =
        table(&["containerPort"], json!({ "name": {}, "containerPort": { "type": "integer" } }));
    let quantities = json!({ "type": "object", "additionalProperties": {
        "type": "string", "pattern": "^[0-9]+(m|Mi|Gi)?$" } });
    let container = table(
        &["name", "image"],
        json!({
            "name": { "type": "string" }, "image": { "type": "string" }, "args": texts(),
            "ports": { "type": "array", "items": port },
            "env": { "type": "array", "items": { "type": "object", "required": ["name"] } },
            "envFrom": { "type": "array", "items": { "type": "object" } },
            "resources": table(&[], json!({ "requests": quantities, "limits": quantities })),
            "readinessProbe": { "type": "object" },
            "volumeMounts": { "type": "array", "items": table(
                &["name", "mountPath"], json!({ "name": {}, "mountPath": { "type": "string" } })) },
        }),
    );
    let pod = table(
        &["metadata", "spec"],
        json!({
            "metadata": table(&["labels"], json!({ "labels": named() })),
            "spec": table(&["containers"], json!({
                "terminationGracePeriodSeconds": { "type": "integer" },
                "containers": { "type": "array", "minItems": 1, "items": container },
            })),
        }),
    );
    let kind = |api: &str, kind: &str, spec: Value| {
        table(
            &["apiVersion", "kind", "metadata", "spec"],
            json!({ "apiVersion": { "const": api }, "kind": { "const": kind }, "metadata": meta, "spec": spec }),
        )
    };
    let service = table(
        &["selector", "ports"],
        json!({ "clusterIP": { "const": "None" }, "selector": named(),
            "ports": { "type": "array", "items": { "type": "object", "required": ["port"] } } }),
    );
    let deployment = table(
        &["selector", "template"],
        json!({ "replicas": { "type": "integer" }, "selector": selector, "template": pod }),
    );
    let stateful = table(
        &["serviceName", "selector", "template"],
        json!({ "serviceName": { "type": "string" }, "replicas": { "type": "integer" },
            "selector": selector, "template": pod,
            "volumeClaimTemplates": { "type": "array", "items": { "type": "object", "required": ["metadata", "spec"] } } }),
    );
    let scaled = table(
        &["scaleTargetRef", "triggers"],
        json!({
            "scaleTargetRef": table(&["name"], json!({ "name": { "type": "string" } })),
            "minReplicaCount": { "type": "integer" }, "maxReplicaCount": { "type": "integer" },
            "cooldownPeriod": { "type": "integer" },
            "triggers": { "type": "array", "minItems": 1, "items": table(&["type", "metadata"], json!({
                "type": { "const": "nats-jetstream" },
                "metadata": table(
                    &["natsServerMonitoringEndpoint", "account", "stream", "consumer", "lagThreshold"],
                    json!({ "natsServerMonitoringEndpoint": {}, "account": {}, "consumer": {},
                        "stream": { "const": "probity_calls" }, "lagThreshold": { "type": "string" } }),
                ),
            })) },
        }),
    );
    let nats = documents("kubernetes/nats.yaml");
    check(&kind("v1", "Service", service), &nats[0]);
    check(&kind("apps/v1", "StatefulSet", stateful), &nats[1]);
    let workers = documents("kubernetes/workers.yaml");
    check(&kind("apps/v1", "Deployment", deployment), &workers[0]);
    check(&kind("keda.sh/v1alpha1", "ScaledObject", scaled), &workers[1]);
    assert_options(&workers[0]["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert_eq!(workers[1]["spec"]["scaleTargetRef"]["name"], workers[0]["metadata"]["name"]);
}

#[test]
fn the_units_are_ones_that_systemd_reads() {
    let known = [
        "Description",
        "After",
        "Wants",
        "EnvironmentFile",
        "ExecStart",
        "Restart",
        "RestartSec",
        "KillSignal",
        "KillMode",
        "TimeoutStopSec",
        "DynamicUser",
        "StateDirectory",
        "WorkingDirectory",
        "NoNewPrivileges",
        "ProtectSystem",
        "ProtectHome",
        "WantedBy",
    ];
    for name in ["systemd/probity-nats.service", "systemd/probity-worker@.service"] {
        let text = fs::read_to_string(deploy().join(name)).unwrap();
        let lines = text.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
        let mut sections = Vec::new();
        for line in lines {
            match line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                Some(section) => sections.push(section.to_owned()),
                None => {
                    let (key, _) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
                    assert!(known.contains(&key), "{name}: {key}");
                }
            }
        }
        assert_eq!(sections, ["Unit", "Service", "Install"], "{name}");
    }
    let worker = fs::read_to_string(deploy().join("systemd/probity-worker@.service")).unwrap();
    let start = worker.lines().find_map(|it| it.strip_prefix("ExecStart=/usr/bin/")).unwrap();
    let words: Vec<&str> = start.split(' ').collect();
    assert_options(&json!(words));
}
