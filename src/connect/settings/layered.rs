//! Settings in layers: the connection string first, then the service file, then the environment.
//!
//! PostgreSQL documentation, "Database Connection Control Functions" and "Environment Variables". The order is that of
//! `conninfo_add_defaults` in fe-connect.c, and the checks are those of `pqConnectOptions2`.

use std::time::Duration;

use super::environment::Environment;
use super::error::SettingsError;
use super::keywords::{self, KEYWORDS};
use super::raw::RawSettings;
use super::service_file;
use super::values;

/// The text of each setting, with its source. If a keyword is there more than once, the first one counts.
pub(super) struct LayeredSettings(Vec<(&'static str, String, SettingSource)>);

/// Where a value comes from.
#[derive(Clone, Debug)]
enum SettingSource {
    /// The connection string.
    Explicit,
    /// A service of this name in the service file.
    Service(String),
    /// An environment variable.
    Variable(&'static str),
}

impl LayeredSettings {
    /// Collects the layers below the settings of a connection string.
    ///
    /// # Errors
    /// A service that is named but cannot be read.
    pub(super) fn gather(
        mut explicit: RawSettings,
        environment: &Environment<'_>,
    ) -> Result<Self, SettingsError> {
        // In a connection string the last of several equal keywords counts.
        explicit.reverse();
        let mut layers = Self(Vec::new());
        layers.add(explicit, &SettingSource::Explicit);
        if let Some(service) = layers
            .get("service")
            .map(str::to_owned)
            .or_else(|| environment.variable("PGSERVICE"))
        {
            let raw = service_file::find(&service, environment)?;
            layers.add(raw, &SettingSource::Service(service));
        }
        for keyword in KEYWORDS {
            if let Some(variable) = keyword.variable
                && let Some(value) = environment.variable(variable)
            {
                layers.add(
                    vec![(keyword.name, value)],
                    &SettingSource::Variable(variable),
                );
            }
        }
        if environment
            .variable("PGREQUIRESSL")
            .is_some_and(|v| v.starts_with('1'))
        {
            let raw = vec![("sslmode", "require".to_owned())];
            layers.add(raw, &SettingSource::Variable("PGREQUIRESSL"));
        }
        Ok(layers)
    }

    /// Adds a layer below those that are there.
    fn add(&mut self, raw: RawSettings, source: &SettingSource) {
        let layer = raw.into_iter().map(|(n, v)| (n, v, source.clone()));
        self.0.extend(layer);
    }

    /// The same error. It begins with the source of the value, unless that is the connection string.
    pub(super) fn locate(&self, error: SettingsError) -> SettingsError {
        error.located(|keyword| {
            let (.., source) = self.0.iter().find(|(known, ..)| *known == keyword)?;
            match source {
                SettingSource::Variable(name) => Some((*name).to_owned()),
                SettingSource::Service(name) => Some(format!("service {name:?}")),
                SettingSource::Explicit => None,
            }
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(keywords::find(name).is_some(), "{name} is not a keyword");
        self.0
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, value, _)| value.as_str())
    }

    /// The value of a setting for which libpq ignores an empty value.
    pub(super) fn nonempty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        valid: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        self.get(name)
            .map(|v| values::choice(name, v, valid))
            .transpose()
    }

    pub(super) fn seconds(&self, name: &str) -> Result<Option<Duration>, SettingsError> {
        Ok(self
            .get(name)
            .map(|v| values::seconds(name, v))
            .transpose()?
            .flatten())
    }

    /// Refuses settings that are not supported and would weaken the connection if they were ignored.
    pub(super) fn refuse_unsupported(&self) -> Result<(), SettingsError> {
        let refusal = |keyword: &str, why: &str| {
            Err(SettingsError::about(
                keyword,
                format!("{keyword} is not supported: {why}"),
            ))
        };
        let gss = [("disable", false), ("prefer", false), ("require", true)];
        if self.choice("gssencmode", &gss)? == Some(true) {
            return Err(SettingsError::about(
                "gssencmode",
                "gssencmode=require is not supported: use TLS (sslmode=verify-full)",
            ));
        }
        if self.nonempty("requirepeer").is_some() {
            return refusal(
                "requirepeer",
                "the owner of the server's socket is not checked",
            );
        }
        if self.nonempty("sslcrldir").is_some() {
            return refusal("sslcrldir", "name one file of revocation lists in sslcrl");
        }
        if let Some(value) = self.nonempty("replication")
            && !["false", "off", "no", "0"].contains(&value.to_ascii_lowercase().as_str())
        {
            return refusal("replication", "a lease needs an ordinary connection");
        }
        Ok(())
    }
}
