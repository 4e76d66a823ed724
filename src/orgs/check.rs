//! Values that a library knows better than a pattern does: time zones, cron lines, addresses.

use crate::error::Violation;

/// A name of the time zone database.
#[must_use]
pub fn check_timezone(pointer: &str, name: &str) -> Option<Violation> {
    let known = jiff::tz::TimeZone::get(name).is_ok();
    (!known)
        .then(|| Violation::at(pointer, "NOT_ALLOWED", format!("`{name}` is no time zone: Europe/Berlin.")))
}

/// A cron line of five fields.
#[must_use]
pub fn check_cron(pointer: &str, line: &str) -> Option<Violation> {
    let error = line.parse::<croner::Cron>().err()?;
    Some(Violation::at(pointer, "NOT_ALLOWED", format!("`{line}` is no cron line: {error}.")))
}

/// An absolute `http` or `https` address.
#[must_use]
pub fn check_url(pointer: &str, text: &str) -> Option<Violation> {
    let good =
        url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    (!good).then(|| Violation::at(pointer, "NOT_ALLOWED", "It must be an http or https address.".to_owned()))
}
