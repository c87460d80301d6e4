//! Why a backend cannot be asked.

use std::path::PathBuf;

use probity_load::template;

use crate::{
    backend::{embedded::EmbeddedError, program::ProgramError},
    recording::RecordingError,
};

/// Why a backend cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The variable with its key is not set.
    #[error("backend `{backend}` needs a key in the variable `{variable}`, which is not set")]
    NoKey {
        /// The backend.
        backend: String,
        /// The variable.
        variable: String,
    },
    /// Its recording cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// It is a program, and cannot be called as the suite says.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Its model is in this process, and cannot be used.
    #[error("backend `{backend}`: {error}")]
    Embedded {
        /// The backend.
        backend: String,
        /// Why not.
        error: EmbeddedError,
    },
    /// A key or header has characters that no header may have.
    #[error("the value of `{variable}` cannot be sent in a header")]
    BadHeader {
        /// The variable.
        variable: String,
    },
    /// A header has a name that no header may have.
    #[error("`{header}` of backend `{backend}` is not the name of a header")]
    BadHeaderName {
        /// The backend.
        backend: String,
        /// The name.
        header: String,
    },
    /// It has no usual address, and none is given.
    #[error("backend `{backend}` needs a `base_url`, or the variable `{variable}`")]
    NoUrl {
        /// The backend.
        backend: String,
        /// The variable.
        variable: &'static str,
    },
    /// It is described by its address, and has none.
    #[error("backend `{backend}` needs a `url`")]
    NoAddress {
        /// The backend.
        backend: String,
    },
    /// Nothing is there that requests to AWS could be signed with.
    #[error(
        "backend `{backend}` needs a key in `{variable}`, or credentials in `AWS_ACCESS_KEY_ID` and \
         `AWS_SECRET_ACCESS_KEY`"
    )]
    NoCredentials {
        /// The backend.
        backend: String,
        /// The variable of the key.
        variable: &'static str,
    },
    /// It is not known which region of AWS requests are signed for.
    #[error(
        "backend `{backend}` needs a region in the variable `AWS_REGION`: its host `{host}` names none"
    )]
    NoRegion {
        /// The backend.
        backend: String,
        /// Where its requests go.
        host: String,
    },
    /// The file with its function is not there.
    #[error("backend `{backend}` has its function in `{path}`, which is not there")]
    NoFile {
        /// The backend.
        backend: String,
        /// The file.
        path: PathBuf,
    },
    /// What its function is told cannot be filled in.
    #[error("`config` of backend `{backend}` has `{text}`, which cannot be filled in: {reason}")]
    BadConfig {
        /// The backend.
        backend: String,
        /// The template.
        text: String,
        /// What is wrong with it.
        reason: template::TemplateError,
    },
    /// It makes no embeddings.
    #[error("backend `{backend}` of kind `{kind}` cannot embed texts")]
    NoEmbeddings {
        /// The backend.
        backend: String,
        /// Its kind.
        kind: &'static str,
    },
    /// It does not say how relevant texts are.
    #[error("backend `{backend}` of kind `{kind}` cannot rank texts")]
    NoReranking {
        /// The backend.
        backend: String,
        /// Its kind.
        kind: &'static str,
    },
    /// No connection to it can be made, ever.
    #[error("backend `{backend}` cannot be connected to: the certificates to trust cannot be used")]
    NoClient {
        /// The backend.
        backend: String,
        /// Why not.
        #[source]
        source: probity_http::Error,
    },
    /// Its address is not one.
    #[error("`{url}` of backend `{backend}` is not the URL of a server")]
    BadUrl {
        /// The backend.
        backend: String,
        /// The address.
        url: String,
    },
}

impl BackendError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey { variable, .. } => {
                Some(format!("export {variable}=..., or name another with `api_key_env`"))
            }
            Self::NoCredentials { .. } => {
                let hint =
                    "`aws configure export-credentials --format env` prints those of a profile";
                Some(hint.to_owned())
            }
            Self::Embedded { error, .. } => error.hint(),
            Self::Program(_)
            | Self::NoUrl { .. }
            | Self::NoAddress { .. }
            | Self::NoRegion { .. }
            | Self::NoFile { .. }
            | Self::BadConfig { .. }
            | Self::BadHeaderName { .. }
            | Self::NoEmbeddings { .. }
            | Self::NoReranking { .. } => None,
            Self::NoClient { .. } => {
                let hint =
                    "`SSL_CERT_FILE` and `SSL_CERT_DIR` say which are trusted, if they are set";
                Some(hint.to_owned())
            }
            Self::Recording(_) => Some("`probity run --record FILE` makes one".to_owned()),
            Self::BadHeader { .. } => Some("is there a line break in it?".to_owned()),
            Self::BadUrl { .. } => {
                let hint = "write it as http://host:port/v1 or https://host/v1, without a `#`";
                Some(hint.to_owned())
            }
        }
    }
}
