//! The only place that decides which names are time zones.

/// Names in the time zone database that browsers refuse, so that the panel could not show a time: placeholders, and the
/// database's own files.
const REFUSED_NAMES: [&str; 4] = ["Factory", "posixrules", "localtime", "Etc/Unknown"];
/// Folders of such names.
const REFUSED_FOLDERS: [&str; 2] = ["posix/", "right/"];

/// Whether a name is in the time zone database and known to browsers.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    REFUSED_NAMES.iter().all(|refused| !refused.eq_ignore_ascii_case(name))
        && REFUSED_FOLDERS.iter().all(|folder| !lower.starts_with(folder))
        && jiff::tz::TimeZone::get(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_is_one_that_browsers_know() {
        for fine in [
            "Europe/Berlin",
            "europe/berlin",
            "UTC",
            "Etc/GMT+1",
            "EST5EDT",
            "GB-Eire",
            "America/Argentina/Ushuaia",
        ] {
            assert!(is_zone(fine), "{fine}");
        }
        let none = [
            "Factory",
            "factory",
            "posixrules",
            "POSIXRULES",
            "localtime",
            "Etc/Unknown",
            "posix/UTC",
            "POSIX/Europe/Berlin",
            "right/UTC",
            "Europe/Nowhere",
            "Europe",
            "",
            " UTC",
            "UTC ",
            "+01:00",
            "GMT+1",
            "EST5EDT,M3.2.0,M11.1.0",
            "../zoneinfo/UTC",
            "/usr/share/zoneinfo/UTC",
            "Etc/../UTC",
            "zone.tab",
            "tzdata.zi",
            "leapseconds",
            "UTC\0",
        ];
        for none in none {
            assert!(!is_zone(none), "{none}");
        }
    }
}
