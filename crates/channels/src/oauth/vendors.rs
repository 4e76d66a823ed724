//! The differences between vendors' authorization servers, as data.

use url::Url;

use crate::network::VendorUrls;

/// A vendor's authorization server.
pub(super) struct Vendor {
    pub name: &'static str,
    pub authorization: Endpoint,
    /// Parameters of the authorization page beyond the standard's.
    pub parameters: &'static [(&'static str, &'static str)],
    pub token: Endpoint,
    pub revocation: Revocation,
    /// Answers who granted a token.
    pub account: Endpoint,
    /// The field of that answer with the account's name.
    pub account_field: &'static str,
}

/// A path below one of the vendor's addresses.
pub(super) struct Endpoint {
    pub base: fn(&VendorUrls) -> &Url,
    pub path: &'static str,
}

pub(super) enum Revocation {
    /// RFC 7009.
    Token(Endpoint),
    /// `DELETE {endpoint}{client id}/grant`
    Grant(Endpoint),
}

/// The access that a channel needs to an account.
pub struct Access {
    pub(super) vendor: &'static Vendor,
    /// Separated by spaces.
    pub(super) scopes: &'static str,
}

impl Access {
    /// The vendor's name, for people.
    pub fn vendor_name(&self) -> &'static str {
        self.vendor.name
    }

    /// Whether a list of granted scopes lacks some. Google lets people deselect scopes, and lists `email` under another
    /// name.
    pub(super) fn lacks_scopes(&self, granted: Option<&str>) -> bool {
        let Some(granted) = granted else { return false };
        let mut needed = self.scopes.split(' ').filter(|scope| scope.contains("://"));
        needed.any(|scope| granted.split(' ').all(|other| other != scope))
    }
}

/// <https://developers.google.com/identity/protocols/oauth2/web-server>
static GOOGLE: Vendor = Vendor {
    name: "Google",
    authorization: Endpoint { base: |urls| &urls.google_accounts, path: "o/oauth2/v2/auth" },
    // Google issues a refresh token only with these.
    parameters: &[("access_type", "offline"), ("prompt", "consent")],
    token: Endpoint { base: |urls| &urls.google_tokens, path: "token" },
    revocation: Revocation::Token(Endpoint { base: |urls| &urls.google_tokens, path: "revoke" }),
    account: Endpoint { base: |urls| &urls.google_api, path: "oauth2/v3/userinfo" },
    account_field: "email",
};

/// <https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app>
static GITHUB: Vendor = Vendor {
    name: "GitHub",
    authorization: Endpoint { base: |urls| &urls.github, path: "login/oauth/authorize" },
    parameters: &[],
    token: Endpoint { base: |urls| &urls.github, path: "login/oauth/access_token" },
    revocation: Revocation::Grant(Endpoint { base: |urls| &urls.github_api, path: "applications/" }),
    account: Endpoint { base: |urls| &urls.github_api, path: "user" },
    account_field: "login",
};

/// Reads and writes events, and lists calendars.
pub static GOOGLE_CALENDAR: Access = Access {
    vendor: &GOOGLE,
    scopes: "openid email https://www.googleapis.com/auth/calendar.events \
             https://www.googleapis.com/auth/calendar.calendarlist.readonly",
};

/// Reads and writes the files of a folder that others fill, and comments. `drive.file` shows only Muster's own files.
pub static GOOGLE_DRIVE: Access =
    Access { vendor: &GOOGLE, scopes: "openid email https://www.googleapis.com/auth/drive" };

/// Acts as a user within the permissions of the GitHub App.
pub static GITHUB_USER: Access = Access { vendor: &GITHUB, scopes: "" };
