//! The browser's cookie jar, as far as the answer to a request can change it.
//!
//! A mutation changes it; the interface that sends the answer writes the header. Most interfaces have no headers left
//! to write, or no browser to write them for: their jar is closed and gives the reason.

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;
use secrecy::SecretString;

use crate::base::problem::{Problem, Result};

/// An answer's change to the session cookie.
#[derive(Debug)]
pub enum JarChange {
    /// Sets it to this token.
    Set(SecretString),
    /// Removes it.
    Clear,
}

/// Takes the change of the session cookie on its way to the answer. All operations of a request share one.
#[derive(Clone, Debug)]
pub struct Jar(Lid);

#[derive(Clone, Debug)]
enum Lid {
    Open(Arc<Mutex<Option<JarChange>>>),
    Closed(Cow<'static, str>),
}

impl Default for Jar {
    fn default() -> Self {
        Self::closed("A cookie can only be set by a POST to /graphql. Leave `cookie` out to get tokens.")
    }
}

impl Jar {
    /// The jar of an answer whose headers are still to be written.
    #[must_use]
    pub fn open() -> Self {
        Self(Lid::Open(Arc::default()))
    }

    /// A jar that the answer can't reach. `why` names the alternative.
    #[must_use]
    pub fn closed(why: impl Into<Cow<'static, str>>) -> Self {
        Self(Lid::Closed(why.into()))
    }

    /// Refuses the argument `cookie` if the answer can't set one, or sets one already: no one would hold the first
    /// session.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, with the reason.
    pub fn require_open(&self) -> Result<()> {
        let why = match &self.0 {
            Lid::Open(slot) => match &*slot.lock() {
                Some(JarChange::Set(_)) => {
                    "This request has signed in already, and a browser holds one session.".into()
                }
                Some(JarChange::Clear) | None => return Ok(()),
            },
            Lid::Closed(why) => why.clone(),
        };
        Err(Problem::invalid_parameter("cookie", "NOT_ALLOWED", why))
    }

    /// Changes the cookie. The last change counts. Does nothing to a closed jar.
    pub fn change(&self, change: JarChange) {
        if let Lid::Open(slot) = &self.0 {
            *slot.lock() = Some(change);
        }
    }

    /// The change to write into the answer, once.
    #[must_use]
    pub fn take_change(&self) -> Option<JarChange> {
        match &self.0 {
            Lid::Open(slot) => slot.lock().take(),
            Lid::Closed(_) => None,
        }
    }
}
