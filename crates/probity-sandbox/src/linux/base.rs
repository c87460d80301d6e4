//! What all worlds of a keeper share: the tools of the host, read-only, and a few directories and files under `/`.
//!
//! It is mounted once. Namespaces of executions begin as copies of the keeper's and find it there.

use std::{
    ffi::CString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use rustix::mount::{MountFlags, MountPropagationFlags};

use super::{Doing as _, sys};
use crate::world::{GROUP_ID, USER_ID};

/// Where the keeper has its own file system, in memory, which nobody else sees. Nobody wants to share what is there on the host.
const HOME: &str = "/sys";
/// The lowest layer of each world.
pub(super) const LOWEST: &str = "/sys/base";
/// Trees of worlds, each under its number.
pub(super) const TREES: &str = "/sys/trees";
/// What an execution writes.
pub(super) const SCRATCH: &str = "/sys/scratch";
/// Where the world of an execution is put together.
pub(super) const ROOT: &str = "/sys/root";
/// The directories of the host.
const HOST: &str = "/sys/host";
/// Where paths of the host are mounted that only this world has, below [`SCRATCH`].
const POINTS: &str = "/sys/scratch/points";
/// Devices.
const DEVICES: &str = "/sys/dev";

/// When what all worlds share was made, in seconds since 1970: on the first day of 2025.
const LOWEST_TIME: i64 = 1_735_689_600;

/// Bytes for trees of worlds in all, which are in memory.
const TREES_SIZE: u64 = 512 << 20;

/// What is taken from the host, if it is there. Nothing that may hold a socket: a read-only mount does not keep anybody from
/// talking to a daemon.
const SHARED: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

const NODES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("shm", "/tmp"),
];

pub(super) fn build() -> Result<(), String> {
    use MountPropagationFlags as Propagation;
    rustix::mount::mount_change("/", Propagation::PRIVATE | Propagation::REC)
        .doing("keeping mounts to itself")?;
    let options = CString::new(format!("mode=0755,size={TREES_SIZE}")).doing("options")?;
    rustix::mount::mount("tmpfs", HOME, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, &*options)
        .doing("mounting a file system in memory")?;
    for directory in [LOWEST, TREES, SCRATCH, ROOT, HOST, DEVICES] {
        fs::create_dir(directory).doing(directory)?;
    }
    for name in SHARED {
        share(name).doing(&format!("taking /{name} from the host"))?;
    }
    devices().doing("making /dev")?;
    lowest().doing("making the lowest layer")?;
    date_entries(Path::new(LOWEST)).doing("setting times of the lowest layer")
}

/// Takes a directory of the host, or a link to one.
fn share(name: &str) -> io::Result<()> {
    let (host, below) = (Path::new("/").join(name), Path::new(LOWEST).join(name));
    let Ok(found) = fs::symlink_metadata(&host) else { return Ok(()) };
    if found.is_symlink() {
        return symlink(fs::read_link(&host)?, below);
    }
    let shared = Path::new(HOST).join(name);
    fs::create_dir(&below)?;
    fs::create_dir(&shared)?;
    rustix::mount::mount_bind_recursive(&host, &shared)?;
    restrict(&shared, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV)
}

fn devices() -> io::Result<()> {
    rustix::mount::mount_bind(DEVICES, DEVICES)?;
    for name in NODES {
        let node = Path::new(DEVICES).join(name);
        fs::File::create(&node)?;
        rustix::mount::mount_bind(Path::new("/dev").join(name), &node)?;
    }
    for (name, target) in LINKS {
        symlink(target, Path::new(DEVICES).join(name))?;
    }
    restrict(
        Path::new(DEVICES),
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
    )
}

fn restrict(path: &Path, flags: u64) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    sys::restrict_mount(&path, flags)
}

/// Directories that every system has, and the files without which tools of the host do not start.
fn lowest() -> io::Result<()> {
    let base = Path::new(LOWEST);
    for name in ["dev", "etc", "proc", "run", "sys", "var/tmp", "tmp"] {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(base.join(name))?;
    }
    for name in ["tmp", "var/tmp"] {
        fs::set_permissions(base.join(name), fs::Permissions::from_mode(0o1777))?;
    }
    let etc = base.join("etc");
    let passwd = format!(
        "root:x:0:0:root:/root:/bin/bash\nuser:x:{USER_ID}:{GROUP_ID}:user:/home/user:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    fs::write(etc.join("passwd"), passwd)?;
    fs::write(etc.join("group"), format!("root:x:0:\nuser:x:{GROUP_ID}:\nnogroup:x:65534:\n"))?;
    fs::write(etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")?;
    fs::write(etc.join("hosts"), "127.0.0.1 localhost world\n")?;
    fs::write(etc.join("hostname"), "world\n")?;
    if let Ok(cache) = fs::read("/etc/ld.so.cache") {
        fs::write(etc.join("ld.so.cache"), cache)?;
    }
    let Ok(alternatives) = fs::read_dir("/etc/alternatives") else { return Ok(()) };
    fs::create_dir(etc.join("alternatives"))?;
    for link in alternatives.flatten() {
        if let Ok(target) = fs::read_link(link.path()) {
            symlink(target, etc.join("alternatives").join(link.file_name()))?;
        }
    }
    Ok(())
}

/// Gives all that is at the top the same time: when a keeper was started is no part of any world.
fn date_entries(directory: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let time = Timespec { tv_sec: LOWEST_TIME, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    let entries = fs::read_dir(directory)?.map(|it| Ok(it?.path()));
    let entries = entries.collect::<io::Result<Vec<_>>>()?;
    for path in entries.iter().map(|it| &**it).chain([directory]) {
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Makes places for paths of the host, in a layer of their own, so that they are no changes of the world. Returns where it is.
pub(super) fn make_points(paths: &[String]) -> Result<&'static str, String> {
    let make = |path: &String| -> io::Result<()> {
        let point = Path::new(POINTS).join(path.trim_start_matches('/'));
        if fs::metadata(path)?.is_dir() {
            return fs::create_dir_all(point);
        }
        point.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::OpenOptions::new().create(true).append(true).open(point).map(drop)
    };
    fs::create_dir(POINTS).doing("making a directory in the scratch")?;
    for path in paths.iter().filter(|path| !is_shared(path)) {
        if Path::new(path).starts_with(HOME) {
            return Err(format!("sharing {path}: nothing under {HOME} can be shared"));
        }
        make(path).doing(&format!("sharing {path}"))?;
    }
    Ok(POINTS)
}

/// Whether every world has a path.
fn is_shared(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    first.is_some_and(|first| SHARED.contains(&first))
}

/// Puts paths of the host into the world at [`ROOT`], where they can only be read.
pub(super) fn mount_paths(paths: &[String]) -> Result<(), String> {
    for path in paths.iter().filter(|path| !is_shared(path)) {
        let point = Path::new(ROOT).join(path.trim_start_matches('/'));
        let mount = || -> io::Result<()> {
            rustix::mount::mount_bind_recursive(path, &point)?;
            let flags = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
            restrict(&point, flags)
        };
        mount().doing(&format!("sharing {path}"))?;
    }
    Ok(())
}

/// Puts what is shared into the world at [`ROOT`].
pub(super) fn mount_shared() -> io::Result<()> {
    let root = Path::new(ROOT);
    for shared in fs::read_dir(HOST)? {
        let shared = shared?;
        rustix::mount::mount_bind_recursive(shared.path(), root.join(shared.file_name()))?;
    }
    rustix::mount::mount_bind_recursive(DEVICES, root.join("dev")).map_err(io::Error::from)
}
