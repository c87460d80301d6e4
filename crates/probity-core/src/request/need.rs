//! What a request needs of whoever is asked, beyond a prompt and instructions.

use super::{Image, Part, Request, Role, ToolChoice};
use crate::named_enum;

named_enum! {
    /// Something that not every backend has.
    pub enum Need ("a need") {
        /// More than one message beside the instructions.
        Conversation = "a conversation",
        /// Tools that may be called.
        Tools = "tools",
        /// A tool that has to be called.
        ForcedCall = "a `tool_choice` that forces a call",
        /// An image that is sent along.
        ImageFile = "an image from a file",
        /// An image that the server fetches.
        ImageUrl = "an image by URL",
        /// An answer of a certain form.
        ResponseFormat = "a `response_format`",
    }
}

impl Request {
    /// What it needs.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        let parts = || self.messages.iter().flat_map(|it| &it.content);
        let has = |wanted: fn(&Part) -> bool| parts().any(wanted);
        let said = self.conversation();
        let is_prompt = matches!(said, [only] if only.role == Role::User);
        let is_forced =
            matches!(self.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        [
            (Need::Conversation, !is_prompt),
            (Need::Tools, !self.tools.is_empty()),
            (Need::ForcedCall, is_forced),
            (Need::ImageFile, has(|it| matches!(it, Part::Image(Image::File(_))))),
            (Need::ImageUrl, has(|it| matches!(it, Part::Image(Image::Url(_))))),
            (Need::ResponseFormat, self.response_format.is_some()),
        ]
        .into_iter()
        .filter_map(|(need, is_there)| is_there.then_some(need))
    }
}
