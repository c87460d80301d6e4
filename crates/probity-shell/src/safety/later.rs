//! Files that are run or trusted later, secrets that are read, and shells that are connected to the network.

use super::{data, feed::Feed, interpreter, target::Classes, unwrap::base_name, walk::Walker};
use crate::tree::{Command, Simple, Span, Word};

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Over,
    Append,
}

impl Walker<'_> {
    /// Judges that something is written to a place of these classes.
    pub(super) fn written_to(&mut self, classes: Classes, write: Write, span: Span) {
        let over = write == Write::Over;
        let core = classes.meets(Classes::CORE);
        let rule = match () {
            () if classes.meets(Classes::DEVICE) => "write-device",
            () if classes.meets(Classes::RAW) => "write-kernel",
            () if classes.meets(Classes::HISTORY) && over => "truncate-history",
            () if classes.meets(Classes::LOG) && over => "truncate-log",
            () if classes.meets(Classes::LOG) => return,
            () if classes.meets(Classes::LOGIN_KEYS) => "authorized-keys",
            () if classes.meets(Classes::RIGHTS) => "write-rights",
            () if classes.meets(Classes::SCHEDULE) => "write-cron",
            () if classes.meets(Classes::UNIT) && core => "write-unit",
            () if classes.meets(Classes::UNIT) => "write-unit-user",
            () if classes.meets(Classes::STARTUP) && core => "write-startup-system",
            () if classes.meets(Classes::STARTUP) && over => "write-startup",
            () if classes.meets(Classes::STARTUP) => "append-startup",
            () if core => "write-system",
            () if classes.meets(Classes::SECRET) && over => "overwrite-secret",
            () if classes.meets(Classes::SYSTEM) => "write-system-data",
            () => return,
        };
        self.report_check(rule, span);
    }

    /// Judges what is written to a file that a shell reads later.
    pub(super) fn run_later(&mut self, classes: Classes, written: &Feed, span: Span) {
        if let Feed::Known(text) = written
            && classes.meets(Classes::STARTUP)
        {
            let opaque = self.take_opaque();
            self.scoped(|walker| walker.text(text, span));
            self.put_opaque(opaque);
        }
    }

    /// Judges that a file which was fetched is saved where it is run or trusted later.
    pub(super) fn saved_to(&mut self, classes: Classes, span: Span) {
        let trusted = Classes::LOGIN_KEYS
            | Classes::RIGHTS
            | Classes::SCHEDULE
            | Classes::STARTUP
            | Classes::UNIT;
        if classes.meets(trusted) {
            self.written_to(classes, Write::Over, span);
        }
    }

    /// `pbcopy < ~/.ssh/id_rsa`
    pub(super) fn secret_input(&mut self, command: &Command, classes: Classes, span: Span) {
        let takes_keys = matches!(command, Command::Simple(simple)
            if matches!(program(simple).as_deref(), Some("ssh-add" | "ssh-keygen")));
        if !takes_keys {
            self.secret_read(classes, span);
        }
    }

    /// Judges that a file of these classes is read.
    pub(super) fn secret_read(&mut self, classes: Classes, span: Span) {
        if classes.meets(Classes::HASHES) {
            self.report_check("read-password-hashes", span);
        } else if classes.meets(Classes::PRIVATE_KEY) {
            self.report_check("read-private-key", span);
        }
    }

    /// A command with a network connection in place of a file.
    pub(super) fn socket(&mut self, command: &Command, span: Span) {
        match command {
            Command::Group(_) | Command::Subshell(_) | Command::While(_) => {
                self.report_check("socket-shell", span);
            }
            Command::Simple(simple) if opens_only(simple) => self.socket = Some(span),
            Command::Simple(simple) if hands_over(simple) => {
                self.report_check("socket-shell", span);
            }
            Command::Simple(_)
            | Command::Pipeline(_)
            | Command::AndOr(_)
            | Command::If(_)
            | Command::For(_)
            | Command::ArithmeticFor(_)
            | Command::Case(_)
            | Command::Condition(_)
            | Command::Arithmetic(_)
            | Command::Function(_)
            | Command::Time(_)
            | Command::Coproc(_)
            | Command::Foreign(_) => {}
        }
    }

    /// A shell, or a text that is not known, is run while a connection is open: someone else may say what.
    pub(super) fn socket_is_run(&mut self) {
        if let Some(span) = self.socket {
            self.report_check("socket-shell", span);
        }
    }
}

/// `exec 5<>/dev/tcp/...` alone; what comes of it is said by what follows.
fn opens_only(simple: &Simple) -> bool {
    simple.words.len() == 1 && program(simple).as_deref() == Some("exec")
}

/// Whether a shell, maybe one that another program starts, gets its input or output from the redirection.
fn hands_over(simple: &Simple) -> bool {
    let Some(first) = simple.words.first() else { return false };
    let Some(name) = first.literal() else { return true };
    let is_shell = |it: &Word| it.literal().is_some_and(|it| interpreter::is_shell(base_name(&it)));
    let starts_others = data::wrappers(base_name(&name)).next().is_some();
    is_shell(first) || starts_others && simple.words.iter().any(is_shell)
}

fn program(simple: &Simple) -> Option<String> {
    let name = simple.words.first()?.literal()?;
    Some(base_name(&name).to_owned())
}
