//! Whether a mail's From is true, as far as the mail server of the mailbox says so (RFC 8601).
//!
//! Only the topmost `Authentication-Results` of that server counts: those below it may have been in the mail when it came. It
//! proves the From's own domain by DMARC, by a DKIM signature of exactly that domain, or by SPF of an envelope from exactly it. One
//! with other bytes than printed ASCII proves nothing, and neither does one in which DMARC fails.

use super::parts::Head;

/// Whether the server `authserv_id` says that this address's domain sent the mail.
pub fn passes(head: &Head<'_>, authserv_id: &str, address: &str) -> bool {
    let Some((_, domain)) = address.rsplit_once('@') else { return false };
    let mut results = head.raw("Authentication-Results").map(|value| {
        // Some programs see words where others see none.
        let is_clear = value.bytes().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        (is_clear, statements(&value))
    });
    let ours = results.find(|(_, statements)| {
        let server = statements.first().and_then(|words| words.first());
        server.is_some_and(|server| server.eq_ignore_ascii_case(authserv_id))
    });
    let Some((true, statements)) = ours else { return false };
    // DMARC has weighed the others.
    let has_failed = statements.iter().any(|words| words.first().is_some_and(|word| word == "dmarc=fail"));
    !has_failed && statements.iter().skip(1).any(|statement| proves(statement, domain))
}

/// Whether one statement (`dkim=pass header.d=a.test`) proves a domain.
fn proves(statement: &[String], domain: &str) -> bool {
    let property = match statement.first().map(String::as_str) {
        Some("dmarc=pass") => "header.from=",
        Some("dkim=pass") => "header.d=",
        Some("spf=pass") => "smtp.mailfrom=",
        _ => return false,
    };
    let said = statement.iter().find_map(|word| word.strip_prefix(property));
    said.is_some_and(|said| said.rsplit('@').next().is_some_and(|last| last.eq_ignore_ascii_case(domain)))
}

/// The words of each statement, in lower case, without comments and quotes.
fn statements(value: &str) -> Vec<Vec<String>> {
    let (mut plain, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    for c in value.chars() {
        match c {
            _ if escaped => {
                escaped = false;
                if depth == 0 {
                    plain.push(if separates(c) { '_' } else { c });
                }
            }
            '\\' => escaped = true,
            '"' if depth == 0 => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            // A quoted text can't end a statement.
            _ if quoted && separates(c) => plain.push('_'),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let tidy = plain.to_ascii_lowercase().replace(" = ", "=").replace(" =", "=").replace("= ", "=");
    tidy.split(';').map(|statement| statement.split_ascii_whitespace().map(str::to_owned).collect()).collect()
}

/// Whether it would end a word or a statement, or tie a name to a value.
fn separates(c: char) -> bool {
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
        passes(&Head::read(&mail).unwrap(), "mx.b.test", "ada@a.test")
    }

    #[test]
    fn one_that_is_not_utf8_proves_nothing_and_hides_those_below() {
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
            ("mx.b.test; spf=pass (dmarc=pass header.from=a.test) smtp.mailfrom=evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"x; dmarc=pass header.from=a.test\"", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"a.test\\ x\"@evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"x\\;dmarc=pass\\ header.from=a.test\\;\"@evil.test", false),
            ("mx.b.test; spf=pass smtp.mailfrom=\"a.test\tx\"@evil.test", false),
            ("mx.c.test; dmarc=pass header.from=a.test", false),
            // A local part may hold what some take for a space.
            ("mx.b.test; spf=pass smtp.mailfrom=a.test\u{a0}x@evil.test", false),
            ("mx.b.test; dkim=pass header.i=x\u{a0}header.d=a.test\u{a0}@evil.test", false),
            ("mx.b.test; dmarc=fail header.from=a.test; spf=pass smtp.mailfrom=a.test", false),
            ("mx.b.test; dmarc=none; spf=pass smtp.mailfrom=a.test", true),
            ("mx.b.test; none", false),
        ] {
            assert_eq!(of(&format!("Authentication-Results: {results}")), expected, "{results}");
        }
        assert!(!of("X-Other: 1"));
    }

    #[test]
    fn what_was_in_the_mail_before_does_not_count() {
        let forged = "Authentication-Results: mx.b.test; dmarc=pass header.from=a.test";
        let real = "Authentication-Results: mx.b.test; dmarc=fail header.from=a.test";
        assert!(!of(&format!("{real}\r\n{forged}")));
        assert!(of(&format!("Authentication-Results: mx.c.test; none\r\n{forged}")));
    }
}
