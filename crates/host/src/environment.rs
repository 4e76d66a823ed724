//! Environment variables of the programs that a host starts.

use std::{collections::BTreeMap, ffi::OsString};

/// Variables of the host's environment passed to every agent.
pub const PASSED: &[&str] = &["LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Variables that a credential may not set: they would change the shim or the loader, outside of any sandbox.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "TMPDIR",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
];

/// The host's own variables for every program, and these.
pub fn inherited_variables(more: &[String]) -> BTreeMap<OsString, OsString> {
    let names = PASSED.iter().copied().chain(more.iter().map(String::as_str));
    names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}

/// Whether a credential may set this variable.
pub fn may_be_set(name: &str) -> bool {
    let is_name = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    is_name && !RESERVED.contains(&name) && !name.starts_with("LD_") && !name.starts_with("DYLD_")
}
