//! Credentials of AWS.

use probity_http::Url;
use probity_load::suite::BackendConfig;

use super::{BackendError, BackendFactory, secret_header};
use crate::{
    backend::{
        dialect::Service,
        sigv4::{Signer, region_of},
    },
    redact::Redactor,
};

const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
/// The variables of credentials.
pub(super) const CREDENTIALS: [&str; 2] = [ACCESS_KEY, SECRET_KEY];
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

impl BackendFactory<'_> {
    /// Who signs requests; none where a key is sent instead, or nothing at all.
    ///
    /// As with keys, signatures are for the vendor's own hosts, and for others only if the suite names
    /// the variable of the secret key.
    pub(super) fn signer(
        &self,
        config: &BackendConfig,
        service: &Service,
        (url, is_official): (&Url, bool),
        redactor: &mut Redactor,
    ) -> Result<Option<Signer>, BackendError> {
        let Some(name) = service.aws else { return Ok(None) };
        match config.api_key_env.as_deref() {
            Some(SECRET_KEY) => {}
            Some(_) => return Ok(None),
            None if !is_official => return Ok(None),
            None if service.key_variables.iter().any(|it| self.stated(it).is_some()) => {
                return Ok(None);
            }
            None if self.stated(SECRET_KEY).is_none() => {
                let backend = config.name.clone();
                let variable = service.key_variables.first().copied().unwrap_or_default();
                return Err(BackendError::NoCredentials { backend, variable });
            }
            None => {}
        }
        self.signer_for(config, name, url, redactor).map(Some)
    }

    /// Who signs requests to a service of AWS, for the region that its host names.
    pub(super) fn signer_for(
        &self,
        config: &BackendConfig,
        service: &str,
        url: &Url,
        redactor: &mut Redactor,
    ) -> Result<Signer, BackendError> {
        let host = url.host_str().unwrap_or_default();
        let of_variables = || REGIONS.iter().find_map(|it| self.stated(it));
        let region = region_of(host).map(ToOwned::to_owned).or_else(of_variables);
        let region = region.ok_or_else(|| BackendError::NoRegion {
            backend: config.name.clone(),
            host: host.to_owned(),
        })?;
        Ok(Signer {
            access_key: self.credential(config, ACCESS_KEY, redactor)?,
            secret_key: self.credential(config, SECRET_KEY, redactor)?,
            session_token: match self.stated(SESSION_TOKEN) {
                Some(_) => Some(self.credential(config, SESSION_TOKEN, redactor)?),
                None => None,
            },
            region,
            service: service.to_owned(),
        })
    }

    fn credential(
        &self,
        config: &BackendConfig,
        variable: &str,
        redactor: &mut Redactor,
    ) -> Result<String, BackendError> {
        let value = self.required(config, variable)?.trim().to_owned();
        redactor.add_key(&value);
        secret_header(&value, variable)?;
        Ok(value)
    }

    /// The value of a variable that says something.
    fn stated(&self, name: &str) -> Option<String> {
        self.variable(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
    }
}
