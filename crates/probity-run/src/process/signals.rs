//! Signals that we were started to ignore.

use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// Signals whose being ignored a program must not inherit.
const MATTER: [SignalKind; 5] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
    SignalKind::child(),
];

/// Lets programs hear signals that we ignore, as under `nohup`.
///
/// An ignored signal stays ignored across `exec`, a handled one does not. So a handler
/// that does nothing is put where nothing was done anyway: the same for us, but the
/// programs start with the default. Needs `/proc`; elsewhere nothing is changed.
pub(super) fn heed_ignored() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        for kind in MATTER {
            if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
                // The handler stays when its stream is dropped.
                let _ = signal(kind);
            }
        }
    });
}

/// The signals that `/proc/self/status` says are ignored, a bit each.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t1\n";
        assert_eq!(ignored(status), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
