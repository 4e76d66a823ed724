//! Rate limits: a token bucket for each person, each service token and each server's host, and for each address without
//! a valid credential.
//!
//! A bucket starts full and refills evenly over a minute. Every process counts separately: with three replicas a caller
//! has three buckets. Only one number is kept for each caller of the last minute ([`RateLimiter::sweep`] drops the
//! rest), so a flood can't fill the memory.
//!
//! [`Arrival::caller`](crate::api::middleware::Arrival::caller) charges a request by its method, so new interfaces are
//! limited automatically. GraphQL charges each operation by its type instead. A request's last charge is kept in its
//! [`RequestNotes`], from which the outermost layer writes the headers of draft-ietf-httpapi-ratelimit-headers.

use std::{hash::Hash, net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{
    Quota,
    clock::Clock as _,
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::{
        StateStore,
        keyed::{DashMapStateStore, ShrinkableKeyedStateStore},
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::{request_notes::RequestNotes, resource_limits::Holder};
use crate::{
    base::{
        ids::{OrgId, ServerId},
        network::client_network,
        numerals::with_noun,
        problem::{Code, Problem, Result},
        time::Clock,
    },
    core::{access::Caller, config, telemetry::metrics},
};

/// The bucket that a request is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It only reads.
    Reads = 0,
    /// It may change something.
    Writes = 1,
    /// It has no valid credential.
    Anonymous = 2,
}

impl Class {
    /// The class of a request with this method.
    #[must_use]
    pub fn of_method(method: &Method) -> Self {
        if method.is_safe() { Self::Reads } else { Self::Writes }
    }

    /// The name in headers, details and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Anonymous => "anonymous",
        }
    }
}

type Buckets<K> = governor::RateLimiter<K, Levels<K>, Ticker, StateInformationMiddleware>;

/// The levels of the buckets, which governor lowers and we can raise for a refund.
struct Levels<K: Eq + Hash>(Arc<DashMapStateStore<K>>);

pub struct RateLimiter {
    clock: Ticker,
    reads: Buckets<Holder>,
    writes: Buckets<Holder>,
    anonymous: Buckets<IpAddr>,
    addresses: Levels<IpAddr>,
    per_minute: [u32; 3],
    /// `RateLimit-Policy`, by class.
    policies: [HeaderValue; 3],
}

impl RateLimiter {
    /// Full buckets of the configured sizes; `None` if rate limits are off.
    #[must_use]
    pub fn new(settings: &config::RateLimits, clock: &Clock) -> Option<Self> {
        if !settings.enabled {
            return None;
        }
        let clock = Ticker(clock.clone());
        let per_minute =
            [settings.reads_per_minute, settings.writes_per_minute, settings.anonymous_per_minute];
        let quota = |class: Class| {
            Quota::per_minute(NonZeroU32::new(per_minute[class as usize]).unwrap_or(NonZeroU32::MIN))
        };
        let policy = |class: Class| {
            let text = format!("\"{}\";q={};w=60", class.name(), per_minute[class as usize]);
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
        };
        let addresses = Levels::default();
        Some(Self {
            reads: bucket(quota(Class::Reads), Levels::default(), &clock),
            writes: bucket(quota(Class::Writes), Levels::default(), &clock),
            anonymous: bucket(quota(Class::Anonymous), addresses.clone(), &clock),
            addresses,
            policies: [policy(Class::Reads), policy(Class::Writes), policy(Class::Anonymous)],
            per_minute,
            clock,
        })
    }

    /// Takes one token from the caller's bucket, or from the address's if the caller is anonymous.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the bucket is empty.
    pub fn charge(
        &self,
        caller: &Caller,
        ip: Option<IpAddr>,
        class: Class,
        notes: &RequestNotes,
    ) -> Result<()> {
        match caller {
            Caller::System => return Ok(()),
            Caller::Anonymous => return self.charge_address(ip, notes),
            Caller::Person(_) | Caller::LinkedChat(_) | Caller::Token(_) => {}
        }
        let buckets = if class == Class::Reads { &self.reads } else { &self.writes };
        self.take_token(buckets, &Holder::of(caller, ip), class, notes)
    }

    /// Takes one token from an address's bucket, for a request without a valid credential.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the bucket is empty.
    pub fn charge_address(&self, ip: Option<IpAddr>, notes: &RequestNotes) -> Result<()> {
        let Some(ip) = ip else { return Ok(()) };
        self.take_token(&self.anonymous, &client_network(ip), Class::Anonymous, notes)
    }

    /// Takes tokens from the bucket of a server's host: one for each KiB or part of one, since its reports are stored.
    /// The bucket is as large as one for reads, because the host reports for many agents. If there are too few tokens,
    /// returns how long until there are enough: a host is slowed down instead of refused, so that no report is lost.
    pub fn pace(&self, org: OrgId, server: ServerId, bytes: usize) -> Option<Duration> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        // A report larger than the whole bucket takes all of it.
        let tokens =
            NonZeroU32::new(kib.min(self.per_minute[Class::Reads as usize])).unwrap_or(NonZeroU32::MIN);
        let few = self.reads.check_key_n(&Holder::Server(org.0, server.0), tokens).ok()?.err()?;
        Some(few.wait_time_from(self.clock.now()))
    }

    /// Takes one token from the bucket of a channel, as large as a caller's for writes, for a request that its vendor
    /// has signed.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the bucket is empty.
    pub fn charge_channel(&self, channel: Holder, notes: &RequestNotes) -> Result<()> {
        self.take_token(&self.writes, &channel, Class::Writes, notes)
    }

    /// Returns a token that was taken before the credential proved valid.
    pub fn refund(&self, ip: Option<IpAddr>) {
        let Some(ip) = ip else { return };
        let one = Duration::from_mins(1) / self.per_minute[Class::Anonymous as usize].max(1);
        // `None`: the bucket was full again and has been dropped.
        let _ = self.addresses.measure_and_replace(&client_network(ip), |level| match level {
            Some(level) => Ok(((), level.saturating_sub(one.into()))),
            None => Err(()),
        });
    }

    fn take_token<K>(&self, buckets: &Buckets<K>, key: &K, class: Class, notes: &RequestNotes) -> Result<()>
    where
        K: Clone + Eq + Hash,
    {
        match buckets.check_key(key) {
            Ok(left) => {
                let remaining = left.remaining_burst_capacity();
                let size = self.per_minute[class as usize];
                // Seconds until the bucket is full again.
                let seconds = (u64::from(size - remaining.min(size)) * 60).div_ceil(u64::from(size));
                notes.record_charge(class, remaining, seconds);
                Ok(())
            }
            Err(until) => {
                let wait = until.wait_time_from(self.clock.now()).as_millis().div_ceil(1000).max(1) as u64;
                notes.record_charge(class, 0, wait);
                if let Some(meters) = metrics::on() {
                    meters.limited(class.name());
                }
                let detail = format!("Too many requests; try again in {}.", with_noun(wait, "second"));
                Err(Problem::new(Code::RateLimited, detail)
                    .with("limit", class.name())
                    .with("retry_after", wait))
            }
        }
    }

    /// Drops full buckets, and returns how many are left.
    pub fn sweep(&self) -> usize {
        self.reads.retain_recent();
        self.reads.shrink_to_fit();
        self.writes.retain_recent();
        self.writes.shrink_to_fit();
        self.anonymous.retain_recent();
        self.anonymous.shrink_to_fit();
        self.reads.len() + self.writes.len() + self.anonymous.len()
    }

    /// Adds the rate limit headers to a response, if its request was charged.
    pub fn write_headers(&self, notes: &RequestNotes, status: StatusCode, headers: &mut HeaderMap) {
        const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
        const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
        let Some((class, remaining, seconds)) = notes.charge() else { return };
        headers.insert(POLICY, self.policies[class as usize].clone());
        let mut text = String::with_capacity(40);
        for part in [
            "\"",
            class.name(),
            "\";r=",
            itoa::Buffer::new().format(remaining),
            ";t=",
            itoa::Buffer::new().format(seconds),
        ] {
            text.push_str(part);
        }
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(LIMIT, value);
        }
        if status == StatusCode::TOO_MANY_REQUESTS && remaining == 0 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

fn bucket<K: Clone + Eq + Hash>(quota: Quota, levels: Levels<K>, clock: &Ticker) -> Buckets<K> {
    governor::RateLimiter::new(quota, levels, clock.clone())
}

impl<K: Eq + Hash> Default for Levels<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Clone for Levels<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> StateStore for Levels<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> std::result::Result<T, E>
    where
        F: Fn(Option<Nanos>) -> std::result::Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

impl<K: Clone + Eq + Hash> ShrinkableKeyedStateStore<K> for Levels<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.retain_recent(drop_below);
    }

    fn shrink_to_fit(&self) {
        ShrinkableKeyedStateStore::shrink_to_fit(&*self.0);
    }

    fn len(&self) -> usize {
        ShrinkableKeyedStateStore::len(&*self.0)
    }

    fn is_empty(&self) -> bool {
        ShrinkableKeyedStateStore::is_empty(&*self.0)
    }
}

/// The service's clock in the form governor needs.
#[derive(Clone, Debug)]
struct Ticker(Clock);

impl governor::clock::Clock for Ticker {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.elapsed())
    }
}

/// The client's address: the peer, or the address that a trusted proxy reports. Only trusted proxies are believed: the
/// list is read from its end, and the first address that is not a trusted proxy is the client.
#[must_use]
pub fn client_address(peer: IpAddr, headers: &HeaderMap, settings: &config::Config) -> IpAddr {
    let trusted =
        |ip: IpAddr| settings.trusted_proxies.iter().any(|network| network.contains(&ip.to_canonical()));
    if settings.trusted_proxies.is_empty() || !trusted(peer) {
        return peer;
    }
    let forwarded = settings.proxy_header == config::ProxyHeader::Forwarded;
    let name = if forwarded { "forwarded" } else { "x-forwarded-for" };
    // An unreadable value is not an address and ends the list: the client may have invented everything before it.
    let values: Vec<&str> =
        headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default()).collect();
    let mut client = peer;
    for element in values.iter().rev().flat_map(|value| value.rsplit(',')) {
        let named = if forwarded { named_by_forwarded(element) } else { address(element) };
        // Hidden or broken: the proxy that reported it is the last known address.
        let Some(ip) = named else { return client };
        client = ip;
        if !trusted(ip) {
            return client;
        }
    }
    client
}

/// The address in `for=` of one element of `Forwarded` (RFC 7239).
fn named_by_forwarded(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, node) = pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    address(node.trim().trim_matches('"'))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if let Some((inner, _)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return inner.parse().ok();
    }
    let alone = || {
        text.rsplit_once(':').and_then(|(ip, _port)| ip.parse::<std::net::Ipv4Addr>().ok()).map(IpAddr::V4)
    };
    text.parse().ok().or_else(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(header: config::ProxyHeader) -> config::Config {
        let mut settings = config::Config::in_folder(std::path::Path::new("/tmp")).unwrap();
        settings.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        settings.proxy_header = header;
        settings
    }

    fn client(peer: &str, header: config::ProxyHeader, values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for name in ["x-forwarded-for", "forwarded"] {
            for value in values {
                headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
        }
        client_address(peer.parse().unwrap(), &headers, &settings(header)).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        use config::ProxyHeader::{Forwarded, XForwardedFor};
        // A direct client is itself, regardless of its headers.
        assert_eq!(client("192.0.2.9", XForwardedFor, &["198.51.100.1"]), "192.0.2.9");
        assert_eq!(client("10.0.0.1", XForwardedFor, &["198.51.100.1"]), "198.51.100.1");
        // The client's own entries come before those of the proxies.
        assert_eq!(
            client("10.0.0.1", XForwardedFor, &["203.0.113.7, 198.51.100.1, 10.2.0.1"]),
            "198.51.100.1"
        );
        assert_eq!(client("10.0.0.1", XForwardedFor, &["203.0.113.7", "198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", XForwardedFor, &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", XForwardedFor, &["198.51.100.1, nonsense"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", XForwardedFor, &["203.0.113.7", "é, 198.51.100.1"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", XForwardedFor, &[]), "10.0.0.1");
        assert_eq!(client("fd00::1", XForwardedFor, &["2001:db8::7"]), "2001:db8::7");
        assert_eq!(
            client(
                "10.0.0.1",
                Forwarded,
                &["for=203.0.113.7", "proto=https;For=\"[2001:db8::7]:80\", for=10.1.1.1"]
            ),
            "2001:db8::7"
        );
        assert_eq!(client("10.0.0.1", Forwarded, &["for=198.51.100.1, for=_hidden"]), "10.0.0.1");
    }

    #[test]
    fn a_customer_s_network_is_one_address() {
        let of = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!((of("::ffff:192.0.2.1"), of("192.0.2.1")), ("192.0.2.1".into(), "192.0.2.1".into()));
    }

    #[test]
    fn returned_tokens_refill_a_bucket_up_to_its_size() {
        let clock = Clock::fixed(crate::base::time::Timestamp(0));
        let config = config::Config::in_folder(std::path::Path::new("/tmp")).unwrap();
        let limits = RateLimiter::new(&config.rate_limits, &clock).unwrap();
        let (ip, notes) = (Some(IpAddr::V4(1.into())), RequestNotes::default());
        let most = config.rate_limits.anonymous_per_minute;
        let taken = || (0..=2 * most).take_while(|_| limits.charge_address(ip, &notes).is_ok()).count();
        limits.refund(ip);
        assert_eq!(taken(), most as usize);
        limits.refund(ip);
        limits.refund(ip);
        assert_eq!(taken(), 2);
        clock.advance(Duration::from_secs(61));
        limits.refund(ip);
        assert_eq!((limits.sweep(), taken()), (0, most as usize));
    }

    #[test]
    fn what_is_full_again_is_forgotten() {
        let clock = Clock::fixed(crate::base::time::Timestamp(0));
        let config = config::Config::in_folder(std::path::Path::new("/tmp")).unwrap();
        let limits = RateLimiter::new(&config.rate_limits, &clock).unwrap();
        let notes = RequestNotes::default();
        for n in 0..1_000_u32 {
            limits.charge_address(Some(IpAddr::V4(n.into())), &notes).unwrap();
        }
        assert_eq!(limits.sweep(), 1_000);
        clock.advance(Duration::from_secs(61));
        assert_eq!(limits.sweep(), 0);
    }
}
