//! Runs a command in a world of its own and says what it did there.
//!
//! A [`World`] is data: files, users, variables, processes. [`world::Prepared`] is such a world as a tree on
//! the disk, made once and never written to again. Each execution sees a copy of it that is thrown away.
//!
//! ```no_run
//! # fn prepared() -> probity_sandbox::world::Prepared { unimplemented!() }
//! use probity_sandbox::{Command, Keeper, Limits, Sandbox};
//!
//! fn main() -> std::process::ExitCode {
//!     // The program starts itself again as its keeper: this has to come first.
//!     if let Some(exit) = probity_sandbox::keep() {
//!         return exit;
//!     }
//!     let sandbox = Sandbox::open(&Keeper::this_program()).expect("no sandbox on this machine");
//!     let command = Command::Shell("rm -rf /etc; echo done".to_owned());
//!     let execution = sandbox.execute(&prepared(), &command, &Limits::default());
//!     println!("{} changes", execution.expect("a keeper").changes.len());
//!     std::process::ExitCode::SUCCESS
//! }
//! ```

mod cache;
pub mod compare;
#[cfg(target_os = "linux")]
mod descriptor;
pub mod execution;
mod gateway;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod namespaces;
mod probe;
#[cfg(target_os = "linux")]
mod protocol;
mod sandbox;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod trial;
pub mod world;

pub use execution::{Command, Execution, Limits};
pub use gateway::{Address, Gateway};
pub use probe::{Means, Obstacle, Offer};
pub use sandbox::{Failure, Keeper, Openings, Sandbox, Session, Stopper, Unavailable};
pub use world::World;

/// Has all threads of this process share a few heaps. That suits few threads that hand each other long texts: of many heaps each
/// would keep what it once needed, and give the rest back to the kernel again and again.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    linux::sys::share_heaps();
}

/// Is this process a keeper? Then it does its work, and `main` has to return what it ended with. This has to come first in
/// `main`, before there is a second thread.
pub fn keep() -> Option<std::process::ExitCode> {
    #[cfg(target_os = "linux")]
    if std::env::args_os().next().is_some_and(|name| name == protocol::KEEPER) {
        return Some(linux::keeper::keep());
    }
    None
}
