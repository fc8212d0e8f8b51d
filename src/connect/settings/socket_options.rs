//! When a silent connection is given up.

use std::time::Duration;

use super::error::SettingsError;
use super::layered::LayeredSettings;
use super::values;

/// When the system asks whether a silent connection is still there. Its own default of two hours would keep an abandoned
/// thread alive for as long.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_COUNT: u32 = 3;
/// How long data may stay unacknowledged.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// The options of a TCP socket. `None` means the operating system's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connect) struct SocketOptions {
    pub(in crate::connect) keepalives: bool,
    pub(in crate::connect) idle: Option<Duration>,
    pub(in crate::connect) interval: Option<Duration>,
    pub(in crate::connect) count: Option<u32>,
    pub(in crate::connect) user_timeout: Option<Duration>,
}

impl SocketOptions {
    /// Reads the settings. Zero means the system's value, as in libpq. Without a setting, our own value is used.
    pub(super) fn read(settings: &LayeredSettings) -> Result<Self, SettingsError> {
        let number = |name: &str| {
            let value = settings.get(name);
            value.map(|v| values::integer(name, v)).transpose()
        };
        let seconds = |name: &str, ours: Duration| match settings.get(name) {
            Some(value) => values::seconds(name, value),
            None => Ok(Some(ours)),
        };
        Ok(Self {
            keepalives: number("keepalives")?.is_none_or(|n| n != 0),
            idle: seconds("keepalives_idle", KEEPALIVES_IDLE)?,
            interval: seconds("keepalives_interval", KEEPALIVES_INTERVAL)?,
            count: match number("keepalives_count")? {
                Some(n) => u32::try_from(n).ok().filter(|n| *n > 0),
                None => Some(KEEPALIVES_COUNT),
            },
            user_timeout: match number("tcp_user_timeout")? {
                Some(ms) => u64::try_from(ms)
                    .ok()
                    .filter(|ms| *ms > 0)
                    .map(Duration::from_millis),
                None => Some(TCP_USER_TIMEOUT),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn socket(given: &str) -> SocketOptions {
        let nowhere = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        Settings::read(Some(given), &nowhere).unwrap().socket
    }

    #[test]
    fn a_silent_connection_ends_by_itself() {
        let ours = SocketOptions {
            keepalives: true,
            idle: Some(KEEPALIVES_IDLE),
            interval: Some(KEEPALIVES_INTERVAL),
            count: Some(KEEPALIVES_COUNT),
            user_timeout: Some(TCP_USER_TIMEOUT),
        };
        assert_eq!(socket("host=h"), ours);
        // In milliseconds, as in libpq. Zero means the system's value.
        assert_eq!(
            socket("tcp_user_timeout=2000").user_timeout,
            Some(Duration::from_secs(2))
        );
        assert_eq!(socket("tcp_user_timeout=0").user_timeout, None);
        assert_eq!(
            socket("keepalives_idle=7").idle,
            Some(Duration::from_secs(7))
        );
        assert_eq!(socket("keepalives_interval=0").interval, None);
        assert_eq!(socket("keepalives_count=2").count, Some(2));
        assert!(!socket("keepalives=0").keepalives);
    }
}
