//! Time: the one clock that the process reads, and the one form of an instant.
//!
//! An instant is a [`Timestamp`]: milliseconds since 1970 in a `BIGINT`, RFC 3339 in UTC with milliseconds on the wire.
//! Nothing else in the crate may ask the system for the time (`clippy.toml` forbids it), so that tests can move it.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, Ordering},
};

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub const DAY_MS: i64 = 86_400_000;

/// An instant. RFC 3339 in UTC with milliseconds: `2026-01-31T08:00:00.000Z`. Input may have any offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sea_orm::DeriveValueType)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant, later by `duration`.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This instant, earlier by `duration`.
    #[must_use]
    pub fn minus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Whole seconds since 1970, as in JWT claims.
    #[must_use]
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Appends the RFC 3339 form to `out`. The hot path of every list, so it writes digits directly and allocates nothing.
    pub fn write(self, out: &mut Vec<u8>) {
        let (days, millis) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (year, month, day) = civil_from_days(days);
        let two = |n: i64| [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
        out.extend_from_slice(&two(year / 100));
        out.extend_from_slice(&two(year));
        out.push(b'-');
        out.extend_from_slice(&two(month));
        out.push(b'-');
        out.extend_from_slice(&two(day));
        out.push(b'T');
        out.extend_from_slice(&two(millis / 3_600_000));
        out.push(b':');
        out.extend_from_slice(&two(millis / 60_000 % 60));
        out.push(b':');
        out.extend_from_slice(&two(millis / 1000 % 60));
        out.push(b'.');
        out.push(b'0' + (millis / 100 % 10) as u8);
        out.extend_from_slice(&two(millis));
        out.push(b'Z');
    }
}

/// The proleptic Gregorian date of a day counted from 1970-01-01: shift the year to begin in March, so that the leap
/// day comes last, and divide by the lengths of the 400-, 100-, 4- and 1-year cycles.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl std::str::FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !is_rfc3339(text) {
            return Err(jiff::Error::from_args(format_args!("not an RFC 3339 timestamp")));
        }
        text.parse::<jiff::Timestamp>().map(|instant| Self(instant.as_millisecond()))
    }
}

/// Whether the text has the form `2026-01-31T08:00:00.000Z`, with any offset and any number of fractional digits,
/// including zero. The library also accepts other forms of ISO 8601, which we do not promise.
fn is_rfc3339(text: &str) -> bool {
    let fits = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                wanted => byte.eq_ignore_ascii_case(&wanted),
            })
    };
    let Some((instant, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else { return false };
    let offset = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()),
    };
    let has_fraction = !rest.starts_with('.') || rest.len() > offset.len() + 1;
    let is_offset = fits(offset, "Z") || fits(offset, "+00:00") || fits(offset, "-00:00");
    fits(instant, "0000-00-00T00:00:00") && has_fraction && is_offset
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An instant. RFC 3339 in UTC with milliseconds: `2026-01-31T08:00:00.000Z`. Input may have any offset.
#[Scalar]
impl ScalarType for Timestamp {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => text.parse().map_err(|_| {
                InputValueError::custom("a timestamp must be in RFC 3339 form: 2026-01-31T08:00:00.000Z")
            }),
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(_))
    }

    fn to_value(&self) -> Value {
        Value::String(self.to_string())
    }
}

/// The source of time. Cheap to clone; all clones of a fixed clock move together.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands still until [`Self::advance`] moves it.
    #[must_use]
    pub fn fixed(at: Timestamp) -> Self {
        Self(Some(Arc::new(AtomicI64::new(at.0))))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Some(fixed) => Timestamp(fixed.load(Ordering::Relaxed)),
            None => Timestamp(system_millis()),
        }
    }

    /// Monotonic time from an arbitrary start, for measuring durations.
    #[must_use]
    pub fn elapsed(&self) -> std::time::Duration {
        static BEGINNING: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        match &self.0 {
            Some(fixed) => {
                std::time::Duration::from_millis(fixed.load(Ordering::Relaxed).max(0).cast_unsigned())
            }
            None => BEGINNING.elapsed(),
        }
    }

    /// Moves a fixed clock. Has no effect on the system's clock.
    pub fn advance(&self, by: std::time::Duration) {
        if let Some(fixed) = &self.0 {
            fixed.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
fn system_millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_form_is_read_back(millis in 0_i64..253_402_300_799_999) {
            let instant = Timestamp(millis);
            prop_assert_eq!(instant.to_string().parse::<Timestamp>().unwrap(), instant);
        }
    }

    #[test]
    fn any_offset_is_taken() {
        let utc: Timestamp = "2026-01-31T08:00:00.000Z".parse().unwrap();
        assert_eq!("2026-01-31T10:00:00+02:00".parse::<Timestamp>().unwrap(), utc);
        assert_eq!(utc.to_string(), "2026-01-31T08:00:00.000Z");
    }

    #[test]
    fn only_the_promised_form_is_taken() {
        for text in [
            "2026-12-01T00:00:00Z",
            "2026-12-01t00:00:00.1z",
            "2026-12-01T00:00:00.123456789-07:30",
            "0001-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Timestamp>().is_ok(), "{text}");
        }
        for text in [
            "2026-12-01 00:00:00Z",
            "20261201T000000Z",
            "2026-12-01T00:00Z",
            "2026-12-01T00:00:00",
            "2026-12-01T00:00:00.Z",
            "2026-12-01T00:00:00,5Z",
            "2026-12-01T00:00:00+02",
            "2026-12-01T00:00:00+0200",
            "2026-12-01T00:00:00Z[UTC]",
            "+002026-12-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "",
            "ä",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
