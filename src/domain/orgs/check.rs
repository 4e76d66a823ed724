//! Checks that need a library rather than a pattern: time zones, cron expressions, URLs.

use croner::parser::{CronParser, Seconds, Year};

use crate::{
    base::{
        numerals::with_noun,
        problem::{Problem, Result, Violation},
        zones::is_zone,
    },
    core::access::Scope,
};

/// The maximum number of years until a schedule's first run: 29 February recurs after eight years at the latest.
const YEARS: i16 = 8;

/// Checks that `name` is in the time zone database and known to browsers.
#[must_use]
pub fn check_timezone(pointer: &str, name: &str) -> Option<Violation> {
    (!is_zone(name)).then(|| {
        Violation::at(
            pointer,
            "NOT_ALLOWED",
            format!("`{name}` is not a known time zone. Example: Europe/Berlin."),
        )
    })
}

/// A cron expression of five fields, evaluated outside of a transaction, because its author determines how long that
/// takes.
#[derive(Clone, Debug)]
pub struct ParsedCron {
    line: String,
    /// The shortest interval between two runs, in minutes; `None` if there is only one. Or why the expression is
    /// invalid.
    shortest: std::result::Result<Option<i64>, String>,
}

/// Evaluates a cron expression, if there is one.
///
/// # Errors
/// The process is ending.
pub async fn parse_cron(scope: &Scope, line: Option<&String>) -> Result<Option<ParsedCron>> {
    let Some(line) = line.cloned() else { return Ok(None) };
    let slot = scope.core.cpu_pool.slot(scope.org).await.map_err(Problem::internal)?;
    slot.run(move || Some(ParsedCron::new(line))).await.map_err(Problem::internal)
}

impl ParsedCron {
    fn new(line: String) -> Self {
        let shortest = find_shortest_interval(&line);
        Self { line, shortest }
    }

    /// Validates the expression. Runs must be at least `minutes` apart.
    #[must_use]
    pub fn check(&self, pointer: &str, minutes: i64) -> Option<Violation> {
        let shortest = match &self.shortest {
            Ok(shortest) => (*shortest)?,
            Err(why) => return Some(Violation::at(pointer, "NOT_ALLOWED", why.clone())),
        };
        let detail = format!(
            "`{}` runs again after {}, but the plan requires at least {} between runs.",
            self.line,
            with_noun(shortest, "minute"),
            with_noun(minutes, "minute")
        );
        (shortest < minutes).then(|| Violation::at(pointer, "TOO_SMALL", detail))
    }
}

/// The shortest interval of a cron expression in minutes, if it runs at least twice; or why it is invalid.
fn find_shortest_interval(line: &str) -> std::result::Result<Option<i64>, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(line);
    let cron = cron.map_err(|error| format!("`{line}` is not a valid cron expression: {error}."))?;
    // A frequent schedule repeats itself from day to day, so a few hundred runs from any day contain its
    // shortest interval. No time zone: a clock change is not the author's choice.
    let (from, years) = (jiff::civil::date(2024, 2, 1), jiff::Span::new().years(YEARS));
    let until = from.saturating_add(years).at(0, 0, 0, 0);
    let instants = cron.iter_after(from.at(0, 0, 0, 0)).take(400);
    let instants: Vec<_> = instants.take_while(|instant| *instant <= until).collect();
    if instants.is_empty() {
        return Err(format!("`{line}` never runs within {YEARS} years."));
    }
    Ok(instants.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_mins()).min())
}

/// Checks for an absolute `http` or `https` URL without a user name or password: everyone who may read a record sees
/// its URLs. The message never repeats the URL, because it may contain a password.
#[must_use]
pub fn check_url(pointer: &str, text: &str) -> Option<Violation> {
    let detail = match url::Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => HTTP,
        Ok(url) if !has_no_credentials(&url) => {
            "The URL must not contain a user name or password. Use a credential instead."
        }
        Ok(_) => return None,
        Err(_) => HTTP,
    };
    Some(Violation::at(pointer, "NOT_ALLOWED", detail))
}

/// [`check_url`] for the address of a model. Refuses IP addresses that can't belong to a model: link-local ones (where
/// clouds serve secrets), unspecified, broadcast and multicast ones. The host decides about other addresses: it
/// resolves names and knows its owner's networks.
#[must_use]
pub fn check_base_url(pointer: &str, text: &str) -> Option<Violation> {
    let refused = check_url(pointer, text);
    if refused.is_some() {
        return refused;
    }
    let url = url::Url::parse(text).ok()?;
    if url.query().is_some() || url.fragment().is_some() || text.contains('*') {
        let detail = "A base URL must not contain a query, a fragment or `*`.";
        return Some(Violation::at(pointer, "NOT_ALLOWED", detail));
    }
    let is_unusable = match url.host()? {
        url::Host::Domain(_) => false,
        url::Host::Ipv4(ip) => is_unusable_v4(ip),
        url::Host::Ipv6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => is_unusable_v4(ip),
            None => ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local(),
        },
    };
    is_unusable.then(|| Violation::at(pointer, "NOT_ALLOWED", "No model can be reached at this address."))
}

const fn is_unusable_v4(ip: std::net::Ipv4Addr) -> bool {
    ip.is_unspecified() || ip.is_link_local() || ip.is_broadcast() || ip.is_multicast()
}

const HTTP: &str = "It must be an absolute http or https URL.";

/// Whether a URL contains neither a user name nor a password.
#[must_use]
pub fn has_no_credentials(url: &url::Url) -> bool {
    url.username().is_empty() && url.password().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str, minutes: i64) -> bool {
        ParsedCron::new(line.to_owned()).check("/x", minutes).is_some()
    }

    #[test]
    fn a_cron_line_has_five_fields() {
        assert!(!refused("0 4 * * 1-5", 0) && !refused("@daily", 0));
        for line in ["", "often", "* * * * * *", "61 * * * *", "* * * *"] {
            assert!(refused(line, 0), "{line}");
        }
    }

    #[test]
    fn a_cron_line_without_a_time_is_refused() {
        for never in
            ["0 0 30 2 *", "* * 31 2,4,6,9,11 *", "0 0 31 4,6 *", "59 23 31 2,4,6,9,11 *", "0 0 30-31 2 *"]
        {
            assert!(refused(never, 0), "{never}");
        }
        for rare in ["0 0 29 2 *", "0 0 L 2 *", "0 0 31 12 *", "0 0 1 1 *"] {
            assert!(!refused(rare, 60), "{rare}");
        }
    }

    #[test]
    fn a_url_must_not_contain_a_password() {
        assert!(check_url("/x", "https://x.example/mcp?a=b@c").is_none());
        for bad in [
            "https://user:hunter2@x.example/",
            "https://user@x.example/",
            "http://:hunter2@x.example",
            "ftp://x",
        ] {
            let refused = check_url("/x", bad).unwrap();
            assert!(!refused.detail.contains("hunter2"), "{bad}");
        }
    }

    #[test]
    fn no_model_is_at_an_address_of_the_link() {
        for fine in
            ["https://api.example/v1", "http://127.0.0.1:11434", "http://10.0.0.7", "http://[fd00::1]/"]
        {
            assert!(check_base_url("/x", fine).is_none(), "{fine}");
        }
        for bad in [
            "http://169.254.169.254/latest",
            "http://0xa9fe.0xa9fe/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://255.255.255.255/",
            "ftp://api.example",
        ] {
            assert!(check_base_url("/x", bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn the_shortest_interval_counts() {
        assert!(!refused("*/15 * * * *", 15) && refused("*/15 * * * *", 16));
        assert!(refused("0,59 0,23 * * *", 2), "a minute between one day and the next");
        assert!(!refused("0 0 29 2 *", 60));
    }
}
