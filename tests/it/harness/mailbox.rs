//! Sent mail: a service that puts mails in a folder, and a reader for them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use muster::{core::config::Config, domain::notifications};

use super::{TestApp, found};

/// A mail, with the parts that tests look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub to: String,
    pub subject: String,
    pub text: String,
    /// The token in its link, or an empty string.
    pub token: String,
}

impl TestApp {
    /// A service whose mails end up in a folder.
    pub async fn with_mail() -> Self {
        Self::with_mail_and(|_| ()).await
    }

    /// [`Self::with_mail`] with more settings.
    pub async fn with_mail_and(configure: impl FnOnce(&mut Config)) -> Self {
        Self::start_with(|config| {
            config.mail.url = Some(format!("file://{}", config.data_dir.join("mail").display()).into());
            config.mail.from = Some("Muster <muster@example.com>".to_owned());
            config.public_url = Some("https://muster.example.com".to_owned());
            configure(config);
        })
        .await
    }

    /// Sends what is due and removes the sent mails from the folder, oldest first.
    pub async fn mails(&self) -> Vec<Mail> {
        notifications::deliver_due(&self.core).await.unwrap();
        mails_in(&self.folder().join("mail"))
    }

    /// The one mail that was sent, or is about to be.
    pub async fn mail(&self) -> Mail {
        let sent = async || Some(self.mails().await).filter(|mails| !mails.is_empty());
        let mut mails = found(sent).await.expect("a mail is sent");
        assert_eq!(mails.len(), 1, "more than one mail: {mails:#?}");
        mails.remove(0)
    }
}

/// Takes the mails out of a folder, oldest first. One that is still being written stays there.
pub fn mails_in(folder: &Path) -> Vec<Mail> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, mode) = (entry.path(), entry.metadata().unwrap().permissions().mode());
        assert_eq!(mode & 0o077, 0, "links in mails open accounts: {mode:o}");
        let eml = fs::read_to_string(&path).unwrap();
        // The end of its last part.
        if eml.trim_end().ends_with("--") {
            found.push(read(&eml));
            fs::remove_file(path).unwrap();
        }
    }
    found.sort_by_key(|(id, _)| *id);
    found.into_iter().map(|(_, mail)| mail).collect()
}

fn read(eml: &str) -> (i64, Mail) {
    let eml = eml.replace("\r\n", "\n");
    let (head, body) = eml.split_once("\n\n").unwrap();
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().to_owned()
    };
    let id = header("Message-ID:").trim_start_matches('<').split('.').next().unwrap().parse().unwrap();
    // The first part is the plain text.
    let part = body.split("\n\n").skip(1).collect::<Vec<_>>().join("\n\n");
    let text = decoded(part.split("\n--").next().unwrap());
    let token = text.split_once("#token=").map_or("", |(_, rest)| rest.split_whitespace().next().unwrap());
    (id, Mail { to: header("To:"), subject: header("Subject:"), token: token.to_owned(), text })
}

/// Decodes quoted-printable if used.
fn decoded(text: &str) -> String {
    let text = text.replace("=\n", "");
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'=').and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).unwrap()
}
