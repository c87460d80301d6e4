//! Names of calls, by what they do.

/// Calls that give a text to a shell or run a program.
pub(super) const RUNS: &[&str] = &[
    "Popen",
    "backtick",
    "call",
    "capture2",
    "capture2e",
    "capture3",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "do_shell_script",
    "exec",
    "execFile",
    "execFileSync",
    "execSync",
    "exec_command",
    "execl",
    "execlp",
    "execute",
    "execv",
    "execve",
    "execvp",
    "getoutput",
    "getstatusoutput",
    "passthru",
    "pcntl_exec",
    "popen",
    "popen2",
    "popen3",
    "posix_spawn",
    "proc_open",
    "run",
    "shell_exec",
    "spawn",
    "spawnSync",
    "spawnl",
    "spawnlp",
    "spawnv",
    "spawnvp",
    "system",
];

/// Calls that remove a directory with all that is in it.
pub(super) const REMOVES_TREES: &[&str] = &[
    "delete_tree",
    "emptyDirSync",
    "purge_directory",
    "remove_dir",
    "remove_entry",
    "remove_entry_secure",
    "remove_tree",
    "removeSync",
    "rimraf",
    "rmSync",
    "rm_r",
    "rm_rf",
    "rmdirSync",
    "rmrf",
    "rmtree",
];

/// Calls that remove a file or an empty directory.
pub(super) const REMOVES_FILES: &[&str] =
    &["delete", "remove", "removedirs", "rm", "rm_f", "rmdir", "unlink", "unlinkSync"];

/// Where calls with plain names such as `remove` are about files.
pub(super) const FILE_MODULES: &[&str] =
    &["Deno", "Dir", "File", "FileUtils", "IO", "Pathname", "fs", "fse", "fsp", "os", "promises"];

/// Calls that write to a file, which is their first string.
pub(super) const WRITES: &[&str] = &[
    "appendFileSync",
    "binwrite",
    "chmod",
    "chmodSync",
    "chown",
    "chownSync",
    "file_put_contents",
    "open",
    "truncate",
    "truncateSync",
    "write",
    "writeFile",
    "writeFileSync",
    "write_bytes",
    "write_text",
];

/// Calls that write to a file, which is their last string, or take it away from where it was.
pub(super) const MOVES: &[&str] =
    &["copy", "copy2", "copyFileSync", "copyfile", "move", "rename", "renameSync"];

/// Calls that read a file.
pub(super) const READS: &[&str] =
    &["binread", "file_get_contents", "open", "read", "readFileSync", "readfile"];

/// Calls that list a directory, whose files are then removed one by one.
pub(super) const LISTS: &[&str] = &[
    "Dir",
    "children",
    "glob",
    "iglob",
    "listdir",
    "opendir",
    "readdir",
    "readdirSync",
    "rglob",
    "scandir",
    "walk",
];

/// Calls that undo base64.
pub(super) const DECODES: &[&str] =
    &["atob", "b64decode", "base64_decode", "decode64", "decode_base64", "urlsafe_decode64"];

/// Names that only programs with a network connection use.
pub(super) const SOCKETS: &[&str] = &[
    "INET",
    "TCPServer",
    "TCPSocket",
    "connect",
    "create_connection",
    "createConnection",
    "createServer",
    "create_server",
    "fsockopen",
    "pfsockopen",
    "socket_create",
    "stream_socket_client",
];

/// Calls that read from a connection, or wait for one.
pub(super) const RECEIVES: &[&str] =
    &["accept", "fgets", "fread", "gets", "listen", "readline", "receive", "recv", "socket_read"];
