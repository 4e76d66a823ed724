//! The URL of the mail server.

use url::Url;

/// The URL of the demo's transport, which writes mail to the log. Links are secrets, so the settings can't ask for it;
/// only `muster demo` sets it.
pub const LOG: &str = "log:";

/// Whether mail is sent without TLS.
pub(super) fn is_plain(url: &Url) -> bool {
    url.query() == Some("tls=none")
}

/// Whether this is a valid mail URL: `smtp://` (STARTTLS, or `?tls=none`), `smtps://`, `file:///`. A password is never
/// sent unencrypted, except to this machine.
#[must_use]
pub fn check_url(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_smtp = |url: &Url| {
        url.has_host()
            && matches!(url.path(), "" | "/")
            && url.fragment().is_none()
            && (url.query().is_none() || is_plain(url))
    };
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "file" => url.to_file_path().is_ok(),
        "smtps" => is_smtp(&url) && url.query().is_none(),
        "smtp" => is_smtp(&url) && (!is_plain(&url) || is_local || url.username().is_empty()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_mail_server_is_checked() {
        for good in [
            "smtp://mail.example.com",
            "smtp://me:secret@mail.example.com:2525",
            "smtps://me:secret@mail.example.com",
            "smtp://relay.internal:25?tls=none",
            "smtp://me:secret@127.0.0.1:25?tls=none",
            "file:///var/spool/muster",
        ] {
            assert!(check_url(good), "{good}");
        }
        for bad in [
            LOG,
            "mail.example.com",
            "smtp://",
            "smtps://mail.example.com?tls=none",
            "smtp://me:secret@mail.example.com?tls=none",
            "smtp://mail.example.com?tls=optional",
            "http://mail.example.com",
            "file://host/folder",
        ] {
            assert!(!check_url(bad), "{bad}");
        }
    }
}
