//! Passwords: argon2id, off the request's thread, and equally slow for unknown users.
//!
//! By design a hash takes tens of milliseconds and 19 MiB. It runs on the blocking pool, at most one per core at a
//! time, so that a burst of sign-ins can neither stall other requests nor use up the memory.

use std::sync::Arc;

use argon2::{
    Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version,
    password_hash::{self},
};
use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::core::{sealing::random_bytes, tasks};

/// The minimum length of a password, in characters: shorter ones are guessed.
pub const MIN_LENGTH: usize = 8;
/// The maximum length of a password, in characters: anyone can have one hashed.
pub const MAX_LENGTH: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub memory_kib: u32,
    /// Passes over the memory.
    pub iterations: u32,
    pub lanes: u32,
}

impl Cost {
    /// OWASP's recommendation for argon2id: 19 MiB, two passes, one lane.
    pub const STANDARD: Self = Self { memory_kib: 19 * 1024, iterations: 2, lanes: 1 };
    /// The lowest cost that argon2 allows, for tests, which hash many passwords that protect nothing.
    pub const CHEAPEST: Self = Self { memory_kib: 8, iterations: 1, lanes: 1 };
}

/// Why a new password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordRule {
    /// Shorter than [`MIN_LENGTH`].
    #[error("a password must have at least {MIN_LENGTH} characters")]
    TooShort,
    /// Longer than [`MAX_LENGTH`].
    #[error("a password must have at most {MAX_LENGTH} characters")]
    TooLong,
    /// It is the e-mail address.
    #[error("the password must not be the e-mail address")]
    SameAsEmail,
}

/// Checks a new password. Length makes a password strong; rules about its characters only make it hard to remember.
///
/// # Errors
/// The rule that it breaks.
pub fn check_rules(password: &SecretString, email: &str) -> Result<(), PasswordRule> {
    let password = normalized(password);
    match password.chars().count() {
        ..MIN_LENGTH => Err(PasswordRule::TooShort),
        length if length > MAX_LENGTH => Err(PasswordRule::TooLong),
        _ if password.trim().to_lowercase() == email.trim().to_lowercase() => Err(PasswordRule::SameAsEmail),
        _ => Ok(()),
    }
}

/// Why a password could not be hashed or compared.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The stored hash is damaged, or the cost is out of range.
    #[error("password hash: {0}")]
    Hash(#[from] password_hash::Error),
    /// The process is shutting down.
    #[error("the password was not checked: shutting down")]
    Stopped,
}

/// Hashes and compares passwords. Cheap to clone.
#[derive(Clone)]
pub struct Passwords {
    argon2: Argon2<'static>,
    slots: Arc<Semaphore>,
    /// Compared against if the user does not exist, at the cost of a real hash.
    decoy: Arc<str>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords").field("params", self.argon2.params()).finish_non_exhaustive()
    }
}

impl Passwords {
    /// Hashes at this cost from now on.
    ///
    /// # Errors
    /// argon2 does not allow the cost.
    pub fn new(cost: Cost) -> Result<Self, PasswordError> {
        let params = Params::new(cost.memory_kib, cost.iterations, cost.lanes, None)
            .map_err(|_| password_hash::Error::ParamsInvalid)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let decoy = decoy_hash(cost).into();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { argon2, slots: Arc::new(Semaphore::new(cores)), decoy })
    }

    /// The hash to store: a PHC string with its own salt.
    ///
    /// # Errors
    /// The process is shutting down.
    pub async fn hash(&self, password: &SecretString) -> Result<String, PasswordError> {
        let password = normalized(password);
        self.run(move |argon2| Ok(argon2.hash_password(password.as_bytes())?.to_string())).await
    }

    /// Whether this is the password. `stored` is `None` if the user does not exist: the answer is then no, after the
    /// same time.
    ///
    /// # Errors
    /// The stored hash is damaged, or the process is shutting down.
    pub async fn verify(&self, password: &SecretString, stored: Option<&str>) -> Result<bool, PasswordError> {
        let password = normalized(password);
        let exists = stored.is_some();
        let stored = stored.unwrap_or(&self.decoy).to_owned();
        let matches = self
            .run(move |argon2| {
                let stored = PasswordHash::new(&stored).map_err(|_| password_hash::Error::EncodingInvalid)?;
                match argon2.verify_password(password.as_bytes(), &stored) {
                    Ok(()) => Ok(true),
                    Err(password_hash::Error::PasswordInvalid) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            })
            .await?;
        Ok(matches && exists)
    }

    /// Whether a stored hash has a different cost from new ones: then hash the password again at the next sign-in.
    #[must_use]
    pub fn is_outdated(&self, stored: &str) -> bool {
        let Ok(stored) = PasswordHash::new(stored) else { return true };
        let params = self.argon2.params();
        Params::try_from(&stored).map_or(true, |other| {
            (other.m_cost(), other.t_cost(), other.p_cost())
                != (params.m_cost(), params.t_cost(), params.p_cost())
        })
    }

    /// Runs on the blocking pool, limited in number.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Argon2<'static>) -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let argon2 = self.argon2.clone();
        tasks::blocking(&self.slots, move || work(&argon2)).await.map_err(|_| PasswordError::Stopped)?
    }
}

/// A hash that no password has, at the cost of real ones. It is random, not computed: computing one would leave its
/// memory with a process that has nothing else to do yet.
fn decoy_hash(cost: Cost) -> String {
    let (salt, hash): ([u8; 16], [u8; 32]) = (random_bytes(), random_bytes());
    let Cost { memory_kib, iterations, lanes } = cost;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    format!("$argon2id$v=19$m={memory_kib},t={iterations},p={lanes}${salt}${hash}")
}

/// The same password however the keyboard composes its characters (NFKC).
fn normalized(password: &SecretString) -> Zeroizing<String> {
    let password = password.expose_secret();
    // Allocated in full: growing would leave copies behind that no one wipes.
    let mut out = Zeroizing::new(String::with_capacity(password.len().saturating_mul(4).min(1 << 20)));
    out.extend(password.nfkc());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passwords() -> Passwords {
        Passwords::new(Cost::CHEAPEST).unwrap()
    }

    #[tokio::test]
    async fn the_right_password_matches_and_no_other() {
        let passwords = passwords();
        let stored = passwords.hash(&"correct horse".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{stored}");
        assert!(passwords.verify(&"correct horse".into(), Some(&stored)).await.unwrap());
        assert!(!passwords.verify(&"correct hors".into(), Some(&stored)).await.unwrap());
        assert_ne!(passwords.hash(&"correct horse".into()).await.unwrap(), stored);
    }

    #[tokio::test]
    async fn nobody_has_no_password() {
        let passwords = passwords();
        assert!(!passwords.verify(&"anything".into(), None).await.unwrap());
        assert!(!passwords.is_outdated(&passwords.decoy), "as expensive as a real one");
        assert!(!passwords.verify(&"anything".into(), Some(&passwords.decoy)).await.unwrap());
        assert!(matches!(passwords.verify(&"x".into(), Some("junk")).await, Err(PasswordError::Hash(_))));
    }

    #[tokio::test]
    async fn composed_and_decomposed_letters_are_one_password() {
        let passwords = passwords();
        let stored = passwords.hash(&"caf\u{e9} caf\u{e9}".into()).await.unwrap();
        assert!(passwords.verify(&"cafe\u{301} cafe\u{301}".into(), Some(&stored)).await.unwrap());
    }

    #[tokio::test]
    async fn a_hash_of_another_cost_is_outdated_but_still_matches() {
        let dearer = Passwords::new(Cost { iterations: 2, ..Cost::CHEAPEST }).unwrap();
        let stored = passwords().hash(&"pass word".into()).await.unwrap();
        assert!(dearer.is_outdated(&stored) && !passwords().is_outdated(&stored));
        assert!(dearer.verify(&"pass word".into(), Some(&stored)).await.unwrap());
    }

    #[test]
    fn rules_are_length_and_not_the_email() {
        let check = |password: &str| check_rules(&password.into(), "someone@example.com");
        assert_eq!(check("1234567"), Err(PasswordRule::TooShort));
        assert_eq!(check("ääääääää"), Ok(()));
        assert_eq!(check(&"x".repeat(256)), Ok(()));
        assert_eq!(check(&"x".repeat(257)), Err(PasswordRule::TooLong));
        assert_eq!(check("Someone@Example.com"), Err(PasswordRule::SameAsEmail));
    }

    #[test]
    fn a_cost_out_of_range_is_refused() {
        assert!(Passwords::new(Cost { memory_kib: 1, iterations: 0, lanes: 0 }).is_err());
    }
}
