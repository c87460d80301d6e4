//! Landlock: a second wall, of other code of the kernel than the first.
//!
//! Nothing outside of the world's root can be opened even by a process that got hold of a way there, no device can be made,
//! no TCP port used but that of a gateway, and neither signals nor abstract sockets reach anybody outside.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    Scope,
};

use crate::gateway::PORT;

/// The newest version of Landlock that is asked for. An older kernel gives what it has.
const VERSION: ABI = ABI::V6;

/// Encloses this process, whose root is that of the world already. If the world is open, its gateway can be reached.
pub(super) fn enclose(is_open: bool) -> io::Result<()> {
    let within = AccessFs::from_all(VERSION) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let gateway = is_open.then(|| NetPort::new(PORT, AccessNet::ConnectTcp)).into_iter();
    let root = PathFd::new("/").map_err(io::Error::other)?;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(VERSION))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(VERSION)))
        .and_then(|rules| rules.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rule(PathBeneath::new(root, within)))
        .and_then(|rules| rules.add_rules(gateway.map(Ok::<_, RulesetError>)))
        .and_then(RulesetCreated::restrict_self);
    status.map(|_| ()).map_err(io::Error::other)
}
