//! Programs that hand a shell to whoever is at the other end of a connection.

use super::{
    super::{interpreter::is_shell, unwrap::base_name},
    Found,
    calls::{RECEIVES, RUNS, SOCKETS},
    last, segments,
    token::Token,
};

/// Whether a program opens a connection, and runs a shell or what it receives.
pub(super) fn hands_out_shell(tokens: &[Token<'_>], found: &[Found]) -> bool {
    let runs_shell = found.iter().any(|it| match it {
        Found::Shell(text) => {
            text.split_whitespace().next().is_some_and(|it| is_shell(base_name(it)))
        }
        Found::Rule(_) => false,
    });
    connects(tokens) && (runs_shell || runs(tokens) && receives(tokens))
}

fn connects(tokens: &[Token<'_>]) -> bool {
    let named = |it: &Token<'_>| matches!(it, Token::Name(path) if segments(path).any(|it| SOCKETS.contains(&it)));
    // `import socket` connects nothing.
    let called = |pair: &[Token<'_>]| match pair {
        [Token::Name(path), Token::Mark('(')] => matches!(last(path), "socket" | "Socket"),
        // Tcl: `[socket HOST PORT]`.
        [Token::Mark('['), Token::Name("socket")] => true,
        _ => false,
    };
    tokens.iter().any(named) || tokens.windows(2).any(called)
}

fn runs(tokens: &[Token<'_>]) -> bool {
    tokens.iter().any(|it| match it {
        Token::Name(path) => RUNS.contains(&last(path)) || matches!(last(path), "eval"),
        Token::Backquoted(_) => true,
        Token::Text(_) | Token::Mark(_) => false,
    })
}

fn receives(tokens: &[Token<'_>]) -> bool {
    let called = |it: &Token<'_>| matches!(it, Token::Name(path) if RECEIVES.contains(&last(path)));
    // Perl: `while (<$s>)`.
    let read = |pair: &[Token<'_>]| matches!(pair, [Token::Mark('<'), Token::Name(path)] if path.starts_with('$'));
    tokens.iter().any(called) || tokens.windows(2).any(read)
}
