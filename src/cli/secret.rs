//! Passwords for commands. They are never arguments, which are visible in `ps` and in the shell's history.

use std::io::{self, IsTerminal, Read};

use secrecy::{ExposeSecret, SecretString};

use super::Failure;

use crate::base::bounds::DETAIL;

/// Where a command gets a new password.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct NewPassword {
    /// Read the password from standard input, one line, instead of asking for it on the terminal
    #[arg(long)]
    password_stdin: bool,
}

impl NewPassword {
    /// The password.
    ///
    /// # Errors
    /// No terminal; two different entries; or standard input that is not one line of text.
    pub(super) fn read(self) -> Result<SecretString, Failure> {
        if self.password_stdin {
            return line(io::stdin().lock());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::invalid(
                "no terminal to ask for the password: pass it on standard input with --password-stdin",
            ));
        }
        let password: SecretString = rpassword::prompt_password("Password: ")?.into();
        let again: SecretString = rpassword::prompt_password("Repeat the password: ")?.into();
        if password.expose_secret() != again.expose_secret() {
            return Err(Failure::invalid("the two passwords differ; nothing was changed"));
        }
        Ok(password)
    }
}

/// One line, without its line ending.
fn line(input: impl Read) -> Result<SecretString, Failure> {
    let mut text = String::new();
    let read = input.take(DETAIL as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::invalid(format!("the password on standard input: {error}")))?;
    let kept =
        text.strip_suffix('\n').map_or(text.len(), |line| line.strip_suffix('\r').unwrap_or(line).len());
    text.truncate(kept);
    let password = SecretString::from(text);
    match password.expose_secret() {
        "" => Err(Failure::invalid("standard input is empty: it must contain the password")),
        text if text.len() > DETAIL || text.contains(['\n', '\r']) => {
            Err(Failure::invalid("standard input must contain the password on one line, and nothing else"))
        }
        _ => Ok(password),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::line;

    #[test]
    fn a_line_loses_its_end_and_nothing_else() {
        for (typed, read) in [("a b ", "a b "), ("pass\n", "pass"), ("pass\r\n", "pass"), (" \n", " ")] {
            assert_eq!(line(typed.as_bytes()).unwrap().expose_secret(), read);
        }
        let long = "x".repeat(10_000);
        for wrong in ["", "\n", "\r\n", "one\ntwo\n", "one\n\n", &long] {
            assert!(line(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(line(&b"\xff\xfe\n"[..]).is_err());
    }
}
