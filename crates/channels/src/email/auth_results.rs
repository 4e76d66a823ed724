//! Verifies a mail's From by the results of the mailbox's mail server (RFC 8601).
//!
//! Only that server's topmost `Authentication-Results` counts: lower ones may have come with the mail. It verifies
//! From's domain by DMARC, by a DKIM signature of exactly that domain, or by SPF for an envelope from exactly that
//! domain. A result with bytes other than printable ASCII verifies nothing, and neither does one with a DMARC failure.
//!
//! Some providers write no name (Microsoft 365), or one of many. For those, [`TOPMOST`] trusts the topmost header,
//! under any name.

use super::mime::Headers;

/// Server name for trusting the topmost header.
pub const TOPMOST: &str = "*topmost";

/// Whether `authserv_id` confirms that this address's domain sent the mail.
pub fn confirms_sender(head: &Headers<'_>, authserv_id: &str, address: &str) -> bool {
    let Some((_, domain)) = address.rsplit_once('@') else { return false };
    // Part of a statement, which anyone may write.
    if authserv_id.contains(['=', ';']) {
        return false;
    }
    let mut results = head.raw("Authentication-Results").map(|value| {
        // Programs differ in splitting other bytes into words.
        let is_clear = value.bytes().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        (is_clear, statements(&value))
    });
    let is_topmost = authserv_id == TOPMOST;
    let ours = results.find(|(_, statements)| {
        let server = statements.first().and_then(|words| words.first());
        is_topmost || server.is_some_and(|server| server.eq_ignore_ascii_case(authserv_id))
    });
    let Some((true, statements)) = ours else { return false };
    // DMARC has weighed the others.
    let has_failed = statements.iter().any(|words| words.first().is_some_and(|word| word == "dmarc=fail"));
    // The server's name is not a statement.
    let named = usize::from(!is_topmost);
    !has_failed && statements.iter().skip(named).any(|statement| confirms_domain(statement, domain))
}

/// Whether a statement (`dkim=pass header.d=a.test`) confirms a domain.
fn confirms_domain(statement: &[String], domain: &str) -> bool {
    let properties: &[&str] = match statement.first().map(String::as_str) {
        Some("dmarc=pass") => &["header.from="],
        // The signer, or its principal, in the same domain or below (RFC 8601, 2.7.1).
        Some("dkim=pass") => &["header.d=", "header.i="],
        Some("spf=pass") => &["smtp.mailfrom="],
        _ => return false,
    };
    let of = |property: &&str| statement.iter().find_map(|word| word.strip_prefix(*property));
    properties
        .iter()
        .find_map(of)
        .is_some_and(|said| said.rsplit('@').next().is_some_and(|last| last.eq_ignore_ascii_case(domain)))
}

/// The words of each statement, in lower case, without comments and quotes.
fn statements(value: &str) -> Vec<Vec<String>> {
    let (mut plain, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    for c in value.chars() {
        match c {
            _ if escaped => {
                escaped = false;
                if depth == 0 {
                    plain.push(if is_separator(c) { '_' } else { c });
                }
            }
            '\\' => escaped = true,
            '"' if depth == 0 => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            // A quoted text can't end a statement.
            _ if quoted && is_separator(c) => plain.push('_'),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let plain: Vec<_> = plain.split_ascii_whitespace().collect();
    let tidy = plain.join(" ").to_ascii_lowercase().replace(" = ", "=").replace(" =", "=").replace("= ", "=");
    tidy.split(';').map(|statement| statement.split_ascii_whitespace().map(str::to_owned).collect()).collect()
}

/// Whether a character ends a word or statement, or joins a name and a value.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &str) -> bool {
        of_bytes(headers.as_bytes())
    }

    fn of_bytes(headers: &[u8]) -> bool {
        let mail = [headers, b"\r\nFrom: ada@a.test\r\n\r\nhi"].concat();
        confirms_sender(&Headers::read(&mail).unwrap(), "mx.b.test", "ada@a.test")
    }

    #[test]
    fn an_invalid_header_proves_nothing_and_hides_lower_ones() {
        let forged = b"Authentication-Results: mx.b.test; dmarc=pass header.from=a.test".as_slice();
        for above in [
            b"mx.b.test; dmarc=fail (caf\xe9) header.from=a.test".as_slice(),
            b"mx.b.test; spf=pass smtp.mailfrom=caf\xe9@a.test",
            b"mx.b.test; dmarc=pass header.from=a.test\xff",
        ] {
            let real = [b"Authentication-Results: ".as_slice(), above].concat();
            assert!(!of_bytes(&real), "{}", String::from_utf8_lossy(above));
            assert!(!of_bytes(&[real.as_slice(), b"\r\n", forged].concat()), "what is below does not count");
        }
        let others =
            b"Authentication-Results: mx.c.test; dmarc=fail (caf\xe9) header.from=a.test\r\n".as_slice();
        assert!(of_bytes(&[others, forged].concat()));
    }

    #[test]
    fn only_a_pass_for_the_senders_domain_counts() {
        for (results, expected) in [
            ("mx.b.test; dmarc=pass (p=none) header.from=a.test", true),
            (
                "mx.b.test 1; spf=fail smtp.mailfrom=a.test;\r\n dkim=pass header.i=@a.test header.d=A.test",
                true,
            ),
            ("mx.b.test; spf=pass smtp.mailfrom=bounces@a.test", true),
            ("mx.b.test; dmarc=fail header.from=a.test", false),
            ("mx.b.test; dkim=pass header.d=evil.test", false),
            ("mx.b.test; dkim=pass header.d=sub.a.test", false),
            ("mx.b.test; dkim=pass header.i=@a.test header.s=x header.b=abc", true),
            ("mx.b.test; dkim=pass header.i=ada@A.test", true),
            ("mx.b.test; dkim=pass header.i=@sub.a.test", false),
            ("mx.b.test; dkim=pass header.d=evil.test header.i=@a.test", false),
            ("mx.b.test; dkim=fail header.i=@a.test", false),
            ("mx.b.test; dkim=pass header.i=\"@a.test x\"@evil.test", false),
            ("mx.b.test; spf=pass (dmarc=pass header.from=a.test) smtp.mailfrom=evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"x; dmarc=pass header.from=a.test\"", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"a.test\\ x\"@evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"x\\;dmarc=pass\\ header.from=a.test\\;\"@evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"a.test\tx\"@evil.test", false),
            ("mx.c.test; dmarc=pass header.from=a.test", false),
            // A local part may contain characters that some take for a space.
            ("mx.b.test; spf=pass smtp.mailfrom=a.test\u{a0}x@evil.test", false),
            ("mx.b.test; dkim=pass header.i=x\u{a0}header.d=a.test\u{a0}@evil.test", false),
            ("mx.b.test; dmarc=fail header.from=a.test; spf=pass smtp.mailfrom=a.test", false),
            ("mx.b.test; dmarc=\r\n\tfail; spf=pass smtp.mailfrom=a.test", false),
            ("mx.b.test; dmarc=none; spf=pass smtp.mailfrom=a.test", true),
            ("mx.b.test; none", false),
        ] {
            assert_eq!(of(&format!("Authentication-Results: {results}")), expected, "{results}");
        }
        assert!(!of("X-Other: 1"));
    }

    #[test]
    fn headers_of_other_servers_do_not_count() {
        let forged = "Authentication-Results: mx.b.test; dmarc=pass header.from=a.test";
        let real = "Authentication-Results: mx.b.test; dmarc=fail header.from=a.test";
        assert!(!of(&format!("{real}\r\n{forged}")));
        assert!(of(&format!("Authentication-Results: mx.c.test; none\r\n{forged}")));
    }

    /// Providers' headers, as in the table of docs/channels/email.md.
    const PROVIDERS: [(&str, &str, &str); 13] = [
        (
            "Gmail",
            "mx.google.com",
            "Authentication-Results: mx.google.com;\r\n       dkim=pass header.i=@a.test header.s=s1 header.b=Ab3dEf9h;\r\n       \
             spf=pass (google.com: domain of ada@a.test designates 192.0.2.7 as permitted sender) smtp.mailfrom=ada@a.test;\r\n       \
             dmarc=pass (p=NONE sp=NONE dis=NONE) header.from=a.test",
        ),
        (
            "Gmail, without DMARC",
            "mx.google.com",
            "Authentication-Results: mx.google.com;\r\n       dkim=pass header.i=@a.test header.s=s1 header.b=Ab3dEf9h",
        ),
        (
            "Microsoft 365",
            TOPMOST,
            "Authentication-Results: spf=pass (sender IP is 192.0.2.7)\r\n smtp.mailfrom=a.test; dkim=pass (signature was verified)\r\n \
             header.d=a.test;dmarc=pass action=none\r\n header.from=a.test;compauth=pass reason=100",
        ),
        (
            "Yahoo",
            TOPMOST,
            "Authentication-Results: atlas-production.v2-mail-prod1-gq1.omega.yahoo.com;\r\n dkim=pass header.i=@a.test header.s=s1;\r\n \
             spf=pass smtp.mailfrom=a.test;\r\n dmarc=pass(p=REJECT) header.from=a.test;",
        ),
        (
            "iCloud",
            "dmarc.icloud.com",
            "Authentication-Results: bimi.icloud.com; bimi=none\r\nAuthentication-Results: arc.icloud.com; arc=none\r\n\
             Authentication-Results: dmarc.icloud.com; dmarc=pass header.from=a.test\r\n\
             Authentication-Results: dkim-verifier.icloud.com;\r\n\tdkim=pass (2048-bit key) header.d=a.test header.i=@a.test",
        ),
        (
            "Fastmail",
            TOPMOST,
            "Authentication-Results: mx3.messagingengine.com;\r\n    dkim=pass (2048-bit rsa key sha256) header.d=a.test\r\n    \
             header.i=@a.test header.b=Ab3dEf9h header.a=rsa-sha256;\r\n    dmarc=pass policy.published-domain-policy=none\r\n    \
             header.from=a.test;\r\n    spf=pass smtp.mailfrom=ada@a.test smtp.helo=out.a.test",
        ),
        (
            "Proton",
            "mail.protonmail.ch",
            "Authentication-Results: mail.protonmail.ch; dmarc=pass (p=none dis=none)\r\n header.from=a.test\r\n\
             Authentication-Results: mail.protonmail.ch; spf=pass smtp.mailfrom=a.test\r\n\
             Authentication-Results: mail.protonmail.ch; dkim=pass (2048-bit key) header.d=a.test header.i=@a.test",
        ),
        (
            "Zoho",
            "mx.zohomail.com",
            "Authentication-Results: mx.zohomail.com;\r\n\tdkim=pass;\r\n\tspf=pass (zohomail.com: domain of a.test designates 192.0.2.7 \
             as permitted sender)  smtp.mailfrom=ada@a.test;\r\n\tdmarc=pass(p=none dis=none)  header.from=a.test",
        ),
        ("GMX", "gmx.net", "Authentication-Results: gmx.net; dkim=pass header.i=@a.test"),
        ("web.de", "web.de", "Authentication-Results: web.de; dkim=pass header.i=@a.test"),
        (
            "Yandex",
            TOPMOST,
            "Authentication-Results: mxfront2g.mail.yandex.net; spf=pass (mxfront2g.mail.yandex.net: domain of a.test designates 192.0.2.7 \
             as permitted sender, rule=[ip4:192.0.2.0/24]) smtp.mail=ada@a.test; dkim=pass header.i=@a.test",
        ),
        (
            "Postfix with OpenDKIM and OpenDMARC",
            "mx.b.test",
            "Authentication-Results: mx.b.test; dmarc=pass (p=none dis=none) header.from=a.test\r\n\
             Authentication-Results: mx.b.test;\r\n\tdkim=pass (2048-bit key; unprotected) header.d=a.test header.i=@a.test",
        ),
        (
            "Postfix with rspamd",
            "mx.b.test",
            "Authentication-Results: mx.b.test;\r\n\tdkim=pass header.d=a.test header.s=s1 header.b=Ab3dEf9h;\r\n\t\
             spf=pass (mx.b.test: domain of ada@a.test designates 192.0.2.7 as permitted sender) smtp.mailfrom=ada@a.test;\r\n\t\
             dmarc=pass (policy=none) header.from=a.test",
        ),
    ];

    fn proven(headers: &str, authserv_id: &str) -> bool {
        let mail = format!("{headers}\r\nFrom: ada@a.test\r\n\r\nhi");
        confirms_sender(&Headers::read(mail.as_bytes()).unwrap(), authserv_id, "ada@a.test")
    }

    #[test]
    fn providers_results_prove_only_their_sender() {
        let forged = "Authentication-Results: FORGED; dmarc=pass header.from=a.test; dkim=pass header.d=a.test; spf=pass smtp.mailfrom=a.test";
        for (provider, authserv_id, headers) in PROVIDERS {
            assert!(proven(headers, authserv_id), "{provider}");
            // The same for another sender, above forged lines with the server's name and without a name.
            let other = headers.replace("a.test", "evil.test");
            for name in [authserv_id, "spf=pass"] {
                let forged = forged.replace("FORGED", name);
                assert!(!proven(&format!("{other}\r\n{forged}"), authserv_id), "{provider}: {name}");
            }
            let failed = other.replace("dmarc=pass", "dmarc=fail").replace("dkim=pass", "dkim=fail");
            assert!(!proven(&failed, authserv_id), "{provider}");
        }
    }

    #[test]
    fn the_topmost_header_counts_under_every_name() {
        let failed = "Authentication-Results: spf=fail smtp.mailfrom=a.test; dkim=none;dmarc=fail action=none header.from=a.test";
        let passed = "Authentication-Results: mx.b.test; dmarc=pass header.from=a.test";
        assert!(proven(passed, TOPMOST) && !proven(failed, TOPMOST));
        assert!(!proven(&format!("{failed}\r\n{passed}"), TOPMOST));
        assert!(!proven("X-Other: 1", TOPMOST));
        // A statement is not a server's name, even in its place.
        assert!(!proven(
            "Authentication-Results: spf=pass smtp.mailfrom=b.test; dmarc=pass header.from=a.test",
            "spf=pass"
        ));
        assert!(!proven("Authentication-Results: *topmost; none\r\nX: 1", "mx.b.test"));
        assert!(!proven("Authentication-Results: mx.c.test; none\r\nX: 1", TOPMOST));
    }
}
