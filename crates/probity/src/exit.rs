//! What the exit code says.

/// What the exit codes say, as help and documentation have it. A test holds them to it.
macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0    success: every gate passed
  1    a gate failed, or the run is worse than its baseline
  2    invalid command line, configuration or dataset
  3    aborted or not usable: fail-fast, budget, signal, too many errors, nothing run
  130  interrupted by a second Ctrl-C"
    };
}
pub(crate) use exit_codes;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: success: every gate passed.
    Success,
    /// 1, or what the command line asks for instead: a gate failed, or the run is worse than its baseline.
    Failed(u8),
    /// 2: invalid command line, configuration or dataset.
    Usage,
    /// 3: aborted or not usable: fail-fast, budget, signal, too many errors, nothing run.
    Aborted,
    /// 130: interrupted by a second Ctrl-C.
    Interrupted,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed(code) => code,
            Self::Usage => 2,
            Self::Aborted => 3,
            Self::Interrupted => 130,
        }
    }
}
