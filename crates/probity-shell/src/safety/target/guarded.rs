//! Files that hold secrets, and files that something runs or trusts later, by their paths.

use super::{Classes, is_unknown, plain};

const SECRET_HASHES: Classes = Classes::SECRET.or(Classes::HASHES);
const SECRET_KEY: Classes = Classes::SECRET.or(Classes::PRIVATE_KEY);
const SECRET_LOGIN: Classes = Classes::SECRET.or(Classes::CREDENTIALS);

/// What is below `/etc`.
pub(super) fn etc(name: &str, names: &[&str]) -> Classes {
    let second = names.get(2).copied().unwrap_or_default();
    let last = names.last().copied().unwrap_or_default();
    let special = match name {
        "shadow" | "gshadow" | "shadow-" | "gshadow-" | "master.passwd" => SECRET_HASHES,
        "ssh" if last.ends_with("_key") => SECRET_KEY,
        "ssl" if second == "private" => SECRET_KEY,
        "krb5.keytab" => SECRET_LOGIN,
        "crontab" | "anacrontab" => Classes::SCHEDULE,
        name if name.starts_with("cron.") => Classes::SCHEDULE,
        "sudoers" | "sudoers.d" | "doas.conf" | "pam.d" | "pam.conf" | "ld.so.preload"
        | "polkit-1" => Classes::RIGHTS,
        "profile" | "profile.d" | "rc.local" | "bash.bashrc" | "bashrc" | "zshrc" | "zshenv"
        | "zprofile" | "zsh" | "environment" | "csh.cshrc" | "csh.login" => Classes::STARTUP,
        "systemd" if matches!(second, "system" | "user") => Classes::UNIT,
        "init.d" | "init" | "rc.d" => Classes::UNIT,
        "xdg" if second == "autostart" => Classes::UNIT,
        _ => Classes::default(),
    };
    Classes::SYSTEM | Classes::CORE | special
}

/// What is guarded in the other system directories; empty if it is not.
pub(super) fn system(names: &[&str]) -> Classes {
    let core = Classes::SYSTEM | Classes::CORE;
    match names {
        ["var", "spool", "cron", _, ..] => core | Classes::SCHEDULE,
        ["usr", "lib", "systemd", ..]
        | ["lib", "systemd", ..]
        | ["Library", "LaunchDaemons" | "LaunchAgents", ..] => core | Classes::UNIT,
        ["proc", "self", ..] => Classes::default(),
        ["Library", "Keychains", _, ..]
        | ["var" | "run", .., "serviceaccount", "token"]
        | ["proc", _, "environ"] => Classes::SYSTEM | SECRET_LOGIN,
        ["var" | "run", .., "secrets", _] => Classes::SYSTEM | Classes::SECRET,
        _ => Classes::default(),
    }
}

/// What is in a home directory.
pub(super) fn home(names: &[&str]) -> Classes {
    let Some(first) = names.first().copied() else { return Classes::HOME };
    if names.iter().all(|it| is_unknown(it)) {
        return Classes::UNSET | Classes::UNKNOWN | Classes::PERSONAL;
    }
    if matches!(first, ".cache" | "tmp") && names.len() > 1 {
        return Classes::TEMPORARY;
    }
    let history = if is_history(first) { Classes::HISTORY } else { Classes::default() };
    let second = names.get(1).copied().unwrap_or_default();
    plain(names, Classes::PERSONAL) | secret(names) | startup(first, second) | history
}

fn secret(names: &[&str]) -> Classes {
    let last = names.last().map(|it| it.to_ascii_lowercase()).unwrap_or_default();
    let holds = |word: &str| last.contains(word);
    match names {
        [".ssh" | ".aws" | ".gnupg" | ".kube"] => Classes::KEYS,
        [".ssh", name, ..] if is_public(name) => Classes::default(),
        [".ssh", name] if is_key(name) => SECRET_KEY,
        [".gnupg", "secring.gpg" | "private-keys-v1.d", ..] => SECRET_KEY,
        [".azure", ..] | [".config", "gcloud", ..] if holds("token") || holds("credential") => {
            SECRET_LOGIN
        }
        [".cargo" | ".terraform.d", name] if name.starts_with("credentials") => SECRET_LOGIN,
        [".aws", "credentials" | "sso" | "cli", ..]
        | [".kube", "config"]
        | [".docker", "config.json"]
        | [".netrc" | ".pgpass" | ".git-credentials" | ".vault-token"]
        | ["Library", "Keychains", _, ..]
        | [".local", "share", "keyrings" | "kwalletd", _, ..]
        | [".config", "gh", "hosts.yml"]
        | [".config", "rclone", "rclone.conf"] => SECRET_LOGIN,
        [".ssh" | ".gnupg" | ".my.cnf" | ".npmrc" | ".pypirc" | ".password-store", ..]
        | [".config", "gcloud" | "gh" | "op" | "rclone", _, ..] => Classes::SECRET,
        _ => Classes::default(),
    }
}

fn is_public(name: &str) -> bool {
    let public = ["config", "known_hosts", "authorized_keys", "rc"];
    has_extension(name, "pub") || public.iter().any(|it| name.starts_with(it))
}

fn is_key(name: &str) -> bool {
    let ends = ["key", "_rsa", "_dsa", "_ecdsa", "_ed25519", ".pem"];
    name.starts_with("id_") || ends.iter().any(|it| name.ends_with(it))
}

fn startup(first: &str, second: &str) -> Classes {
    match (first, second) {
        (".ssh", "authorized_keys" | "authorized_keys2") => Classes::LOGIN_KEYS,
        ("Library", "LaunchAgents") | (".config" | ".local", "systemd") => Classes::UNIT,
        (".ssh", "rc")
        | (".config", "autostart" | "fish")
        | (
            ".bashrc" | ".bash_profile" | ".bash_login" | ".bash_logout" | ".bash_aliases"
            | ".profile" | ".zshrc" | ".zprofile" | ".zshenv" | ".zlogin" | ".cshrc" | ".login"
            | ".kshrc" | ".xinitrc" | ".xprofile" | ".xsession",
            _,
        ) => Classes::STARTUP,
        _ => Classes::default(),
    }
}

pub(super) fn is_history(name: &str) -> bool {
    name.ends_with("_history") || name == ".histfile" || name == "fish_history"
}

pub(super) fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, it)| it == extension)
}

/// What a file's name alone says about the secrets in it; empty if nothing.
pub(super) fn secret_name(name: &str) -> Classes {
    let sample = name.ends_with("example") || name.ends_with("sample");
    match name {
        "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" => SECRET_KEY,
        "Login Data" | "key4.db" | "logins.json" | "cookies.sqlite" => SECRET_LOGIN,
        ".env" => Classes::SECRET,
        _ if name.starts_with(".env.") && !sample => Classes::SECRET,
        _ if ["pem", "key", "p12", "pfx"].iter().any(|it| has_extension(name, it)) => {
            Classes::SECRET
        }
        _ => Classes::default(),
    }
}
