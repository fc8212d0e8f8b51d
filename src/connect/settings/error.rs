//! The error of a setting.

use std::fmt;

/// A connection string, variable or file that cannot be used.
///
/// The text names the setting and says what would be right. It never contains a password.
#[derive(Debug)]
pub struct SettingsError {
    text: String,
    /// The keyword of the setting, if the text does not say where its value comes from.
    keyword: Option<String>,
}

impl SettingsError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            keyword: None,
        }
    }

    /// An error in the value of one setting. `LayeredSettings` knows where the value comes from.
    pub(super) fn about(keyword: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            keyword: Some(keyword.to_owned()),
        }
    }

    /// An error in the TLS files that the settings name.
    pub(in crate::connect) fn in_tls_files(text: String) -> Self {
        Self::new(text)
    }

    /// The same error, with `source` before the text if there is one for the setting's keyword.
    pub(super) fn located(mut self, source: impl FnOnce(&str) -> Option<String>) -> Self {
        if let Some(source) = self.keyword.take().and_then(|keyword| source(&keyword)) {
            self.text = format!("{source}: {}", self.text);
        }
        self
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SettingsError {}
