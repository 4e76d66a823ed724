//! Throttling of sign-in attempts: guessing gets slower with each wrong guess, across all replicas.
//!
//! An attempt is charged in the database before it is checked, so that a hundred concurrent attempts count as a
//! hundred. After a few free attempts, each further one doubles the delay before the next, up to a limit of minutes: no
//! one is locked out permanently. A success resets the counter.
//!
//! Three counters apply to a sign-in: the account from this IP address, the IP address, and the account from anywhere.
//! If the account has signed in from the address before, the correct password is accepted even while the last two
//! counters block all others. So a stranger who attacks an account from elsewhere, or other accounts from behind the
//! same proxy, can't lock out its owner. A new password set by mail resets the account's counter. A wrong password is
//! answered, charged, and counted in the same way whether or not the account exists and has signed in from the address,
//! so that guessing reveals neither.

use std::{net::IpAddr, time::Duration};

use sha2::{Digest, Sha256};

use super::queries;
use crate::{
    base::{
        folding,
        ids::UserId,
        network,
        numerals::with_noun,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        store::{
            Transaction,
            sql::{InstallationSql, RunWritingSql},
        },
    },
};

/// How a counter slows down attempts.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The number of free attempts.
    free: i64,
    /// The delay after the first attempt beyond those. Each further one doubles it.
    first: Duration,
    /// The longest delay.
    most: Duration,
}

impl Rule {
    /// `free` guesses, then delays from a second to a quarter of an hour.
    const fn for_guesses(free: i64) -> Self {
        Self { free, first: Duration::from_secs(1), most: Duration::from_mins(15) }
    }

    fn delay(self, failures: i64) -> Duration {
        let over = failures - self.free;
        if over < 0 {
            return Duration::ZERO;
        }
        let factor = 1_u32.checked_shl(u32::try_from(over).unwrap_or(31).min(31)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.most)
    }
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    hash: Vec<u8>,
    kind: &'static str,
}

impl Key {
    fn new(kind: &'static str, what: &str) -> Self {
        let mut digest = Sha256::new();
        digest.update(kind.as_bytes());
        digest.update([0]);
        digest.update(what.as_bytes());
        Self { hash: digest.finalize().to_vec(), kind }
    }

    /// Attempts at one account's password from one IP address.
    pub fn pair(email: &str, ip: Option<IpAddr>) -> Self {
        Self::new("pair", &format!("{} {}", network(ip), folding::address(email)))
    }

    /// Attempts at one account's password from anywhere.
    pub fn account(email: &str) -> Self {
        Self::new("account", &folding::address(email))
    }

    /// Attempts from one IP address, at anything.
    pub fn address(ip: Option<IpAddr>) -> Self {
        Self::new("address", &network(ip))
    }

    /// Attempts at one person's second factor.
    pub fn second_factor(user: UserId) -> Self {
        Self::new("factor", &user.to_string())
    }

    /// Attempts at the password of a person who is signed in.
    pub fn password(user: UserId) -> Self {
        Self::new("password", &user.to_string())
    }

    /// Sign-ins through a provider from one IP address.
    pub fn elsewhere(ip: Option<IpAddr>) -> Self {
        Self::new("elsewhere", &network(ip))
    }

    /// Mails that callers have sent to an e-mail address.
    pub fn mail(email: &str) -> Self {
        Self::new("mail", &folding::address(email))
    }

    /// Mails with a password link for an e-mail address. Counted separately from other mails: inviting an address, or
    /// asking to change to it, is charged even if no mail is sent, and must not prevent its owner from resetting the
    /// password.
    pub fn reset(email: &str) -> Self {
        Self::new("reset", &folding::address(email))
    }

    /// Attempts at the code of the first start, from one IP address.
    pub fn first_start(ip: Option<IpAddr>) -> Self {
        Self::new("first start", &network(ip))
    }

    fn rule(&self) -> Rule {
        match self.kind {
            "address" | "elsewhere" => Rule::for_guesses(40),
            "account" => Rule::for_guesses(20),
            "mail" | "reset" => {
                Rule { free: 3, first: Duration::from_mins(1), most: Duration::from_hours(1) }
            }
            // Its 256 bits can't be guessed: five tries in a minute are enough for people who mistype it.
            "first start" => Rule { first: Duration::from_mins(1), ..Rule::for_guesses(5) },
            // Six digits: at this pace, a year of guessing finds a code with a probability of about one in forty.
            "factor" => Rule { most: Duration::from_hours(1), ..Rule::for_guesses(5) },
            _ => Rule::for_guesses(5),
        }
    }
}

/// The network by which an IP address is counted.
fn network(ip: Option<IpAddr>) -> String {
    ip.map_or_else(|| "none".to_owned(), |ip| network::client_network(ip).to_string())
}

/// Charges an attempt to these counters. Returns how long the next one has to wait.
///
/// # Errors
/// `RATE_LIMITED`, with `details.retry_after` in seconds, in which case nothing is charged.
pub async fn charge(core: &Core, keys: &[Key]) -> Result<Duration> {
    let now = core.clock.now();
    let mut keys: Vec<&Key> = keys.iter().collect();
    // Always lock in the same order, so that two requests with the same counters can't deadlock.
    keys.sort();
    let tx = core.db.begin().await?;
    let (mut waits, mut next) = (0, Duration::ZERO);
    for key in keys {
        let (failures, blocked_until) = lock_counter(core, &tx, key).await?;
        waits = waits.max(blocked_until - now.0);
        next = next.max(count(core, &tx, key, failures + 1).await?);
    }
    if waits > 0 {
        tx.rollback().await?;
        return Err(refusal(waits));
    }
    tx.commit().await?;
    Ok(next)
}

/// A charged sign-in attempt.
#[derive(Debug)]
pub struct Attempt {
    /// How long the next one has to wait.
    pub wait: Duration,
    /// The refusal for all clients except a known one with the correct password. Set while the IP address, or the
    /// account from anywhere, is throttled.
    pub put_off: Option<Problem>,
}

/// Charges a sign-in to its three counters. While the IP address or the account is throttled, charges only the counter
/// for the two together: the attempt may still be checked, and must not be free.
///
/// # Errors
/// `RATE_LIMITED` if the account is throttled at this IP address, in which case nothing is charged.
pub async fn charge_sign_in(core: &Core, email: &str, ip: Option<IpAddr>) -> Result<Attempt> {
    let now = core.clock.now();
    let pair = Key::pair(email, ip);
    let mut keys = [pair.clone(), Key::address(ip), Key::account(email)];
    keys.sort();
    let tx = core.db.begin().await?;
    let (mut waits, mut is_put_off, mut failures) = (0, false, [0; 3]);
    for (key, failures) in keys.iter().zip(&mut failures) {
        let (before, blocked_until) = lock_counter(core, &tx, key).await?;
        *failures = before + 1;
        waits = waits.max(blocked_until - now.0);
        is_put_off |= *key == pair && blocked_until > now.0;
    }
    if is_put_off {
        tx.rollback().await?;
        return Err(refusal(waits));
    }
    let mut wait = Duration::ZERO;
    for (key, failures) in keys.iter().zip(failures) {
        if waits <= 0 || *key == pair {
            wait = wait.max(count(core, &tx, key, failures).await?);
        }
    }
    tx.commit().await?;
    let put_off = (waits > 0).then(|| {
        let next = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        refusal(waits.max(next))
    });
    Ok(Attempt { wait, put_off })
}

/// Updates a counter's failures. Returns how long the next attempt has to wait for it.
async fn count(core: &Core, tx: &Transaction, key: &Key, failures: i64) -> Result<Duration> {
    let (now, delay) = (core.clock.now(), key.rule().delay(failures));
    queries::set_counter(tx, &key.hash, failures, (now.plus(delay), now)).await?;
    Ok(delay)
}

/// Locks a counter until the transaction ends. Returns its failures and the end of its block.
async fn lock_counter(core: &Core, tx: &Transaction, key: &Key) -> Result<(i64, i64)> {
    let now = core.clock.now();
    let Some(counter) = queries::lock_counter(tx, &key.hash, now).await? else { return Ok((0, 0)) };
    // `jobs/retention.rs` removes such a counter.
    let forgotten = counter.updated_at < now.minus(Duration::from_hours(12)).0;
    Ok((if forgotten { 0 } else { counter.failures }, counter.blocked_until))
}

fn refusal(millis: i64) -> Problem {
    let seconds = millis.div_euclid(1000) + i64::from(millis.rem_euclid(1000) > 0);
    Problem::new(
        Code::RateLimited,
        format!("Too many attempts. Try again in {}.", with_noun(seconds, "second")),
    )
    .with("retry_after", seconds)
}

/// Resets these counters: the person has proved their identity.
pub async fn forgive(runner: &impl RunWritingSql<Sql = InstallationSql>, keys: &[Key]) -> Result<()> {
    for key in keys {
        queries::delete_counter(runner, &key.hash).await?;
    }
    Ok(())
}

/// Refunds one charge of an attempt that was not a wrong guess. Other people's failures from the same IP address stay.
pub async fn refund(runner: &impl RunWritingSql<Sql = InstallationSql>, key: &Key) -> Result<()> {
    queries::lower_counter(runner, &key.hash).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit() {
        let rule = Rule::for_guesses(5);
        let seconds = |failures| rule.delay(failures).as_secs();
        assert_eq!([1, 4, 5, 6, 7, 10].map(seconds), [0, 0, 1, 2, 4, 32]);
        assert_eq!([15, 40, i64::MAX].map(seconds), [900; 3]);
    }

    #[test]
    fn one_customer_is_one_address() {
        let of = |ip: &str| network(Some(ip.parse().unwrap()));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(Key::account("a@example.com"), Key::mail("a@example.com"));
        assert_eq!(Key::account(" A@Example.com"), Key::account("a@example.com"));
    }
}
