//! A reading of the server's clock, or a time from a row that others may have written.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// A `timestamptz`. It is only compared with others from the same server, never with a local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerTime {
    /// `-infinity`: before every other time.
    Always,
    /// Microseconds since 1970.
    At(i64),
    /// `infinity`: after every other time.
    Never,
}

impl ServerTime {
    /// Milliseconds from `earlier` until this, rounded down; negative if it is not later. `None` if one of them is endless.
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> Option<i64> {
        match (self, earlier) {
            (Self::At(to), Self::At(from)) => Some(to.saturating_sub(from).div_euclid(1000)),
            (Self::Always | Self::At(_) | Self::Never, _) => None,
        }
    }
}

/// The last second that RFC 3339 can write: the end of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

impl fmt::Display for ServerTime {
    /// RFC 3339 in UTC, with milliseconds. A time that it can't write, before 1970 or after 9999, is written as date(1)
    /// reads it: `@` and the seconds since 1970.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = match *self {
            Self::Always => return f.write_str("-infinity"),
            Self::Never => return f.write_str("infinity"),
            Self::At(micros) => micros,
        };
        match u64::try_from(micros) {
            Ok(since) if since / 1_000_000 <= LAST_SECOND => {
                let time = UNIX_EPOCH + Duration::from_micros(since);
                humantime::format_rfc3339_millis(time).fmt(f)
            }
            Ok(_) | Err(_) => write!(f, "@{}", micros.div_euclid(1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_can_be_written() {
        let shown = |micros| ServerTime::At(micros).to_string();
        assert_eq!(shown(1_796_098_343_884_123), "2026-12-01T04:12:23.884Z");
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(253_402_300_799_999_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(shown(253_402_300_800_000_000), "@253402300800");
        assert_eq!(shown(-1), "@-1");
        assert_eq!(ServerTime::Never.to_string(), "infinity");
    }

    #[test]
    fn an_endless_time_is_later_than_all_others_and_at_no_distance() {
        let (now, later) = (ServerTime::At(1_000_000), ServerTime::At(3_500_999));
        assert!(ServerTime::Always < now && now < later && later < ServerTime::Never);
        assert_eq!(later.millis_since(now), Some(2_500));
        assert_eq!(now.millis_since(later), Some(-2_501));
        assert_eq!(ServerTime::Never.millis_since(now), None);
    }
}
