//! Who plays the user of conversations.

use probity_core::conversation::SimulatedUser;

use super::{BackendConfig, runner::check_backend};
use crate::case::{Fields, USER_FIELDS, user_fields};

/// What a runner says of the user.
#[derive(Default)]
pub(super) struct UserConfig {
    /// The backend that plays it.
    pub(super) backend: Option<String>,
    /// What holds for all cases that do not say otherwise.
    pub(super) part: Option<SimulatedUser>,
}

/// The name of the backend, or a table with that and with what all cases have in common.
pub(super) fn decode(backends: &[BackendConfig], fields: &mut Fields<'_, '_>) -> UserConfig {
    let Some(node) = fields.get("user") else { return UserConfig::default() };
    if node.as_str().is_some() || node.entries().is_empty() {
        return UserConfig { backend: decode_name("user", backends, fields), part: None };
    }
    let Some(mut inner) = Fields::new(node, "`user`", USER_FIELDS, fields.findings()) else {
        return UserConfig::default();
    };
    let backend = decode_name("backend", backends, &mut inner);
    let instructions = inner.text("instructions").unwrap_or_default();
    let part = SimulatedUser { instructions, ..user_fields(&mut inner) };
    UserConfig { backend, part: Some(part) }
}

/// A backend that is there, by its name.
pub(super) fn decode_name(
    key: &'static str,
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Option<String> {
    let name = fields.text(key)?;
    check_backend(Some(&name), key, backends, fields);
    Some(name)
}
