//! The table of all resource limits, for the documentation.

/// A limit as documented.
pub struct Entry {
    /// The name in metrics and in the details of a refusal.
    pub name: &'static str,
    /// What is counted.
    pub about: &'static str,
    /// The maximum for an address without a credential.
    pub anonymous: &'static str,
    /// The maximum for a caller.
    pub known: &'static str,
    /// The maximum for all together.
    pub together: &'static str,
    /// What happens beyond it.
    pub beyond: &'static str,
}

/// Every resource limit, and two similar ones that are enforced where the work is done. Names in braces are settings,
/// whose defaults the documentation shows.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "connections",
        about: "Open connections, including sockets",
        anonymous: "",
        known: "",
        together: "{limits.connections}, or fewer if `ulimit -n` requires",
        beyond: "32 more, on which probes are answered and everyone else gets 503; further ones wait",
    },
    Entry {
        name: "sockets",
        about: "WebSockets",
        anonymous: "{limits.sockets_anonymous}; closed unless a credential arrives within {limits.socket_init_seconds} s",
        known: "{limits.sockets_per_caller}",
        together: "as connections",
        beyond: "429, or the socket is closed (4403; 4408 without a credential in time)",
    },
    Entry {
        name: "hosts",
        about: "Connections of hosts (`/gateway`). The bytes of their frames count as bodies and answers",
        anonymous: "0",
        known: "8 of a server: the newest is in force, the others are being closed",
        together: "as connections",
        beyond: "429",
    },
    Entry {
        name: "subscriptions",
        about: "Open subscriptions, and requests that wait for a turn",
        anonymous: "0",
        known: "{limits.subscriptions_per_caller}",
        together: "",
        beyond: "429, as an error of that operation",
    },
    Entry {
        name: "watchers",
        about: "The same, by organization",
        anonymous: "",
        known: "",
        together: "{limits.subscriptions_per_organization} per organization",
        beyond: "the same",
    },
    Entry {
        name: "body_bytes",
        about: "Bytes of request bodies being received, and of files that come with messages of channels; only bodies over 16 KiB count",
        anonymous: "one body of {limits.anonymous_body_bytes}; all addresses together a quarter",
        known: "an eighth, or one body; an organization's tokens count as one caller. Its tokens, channels and hosts can \
                hold at most as much as stays free. A webhook's bytes count against the sender's address until its channel's \
                vendor has signed once",
        together: "{limits.bodies_bytes}",
        beyond: "413; 429; 503 if all together hold too much",
    },
    Entry {
        name: "answer_bytes",
        about: "Bytes of answers waiting to be sent; only answers over 16 KiB count",
        anonymous: "an eighth, or one answer; all addresses together a quarter",
        known: "an eighth, or one answer; an organization's tokens count as one caller. Its tokens and hosts can hold at most \
                as much as stays free",
        together: "{limits.answers_bytes}",
        beyond: "429; 503. After a change only 503, and only for answers over 64 KiB; the change stands. A connection that reads less than 64 KiB in {limits.write_timeout_seconds} s while more is waiting is closed",
    },
    Entry {
        name: "lanes",
        about: "Channels to which a process is sending; `asking` counts the channels in which it asks people, `event_lanes` \
                the endpoints to which it sends events",
        anonymous: "",
        known: "64 of an organization, and no more than stay free",
        together: "256",
        beyond: "its messages wait, the oldest first",
    },
    Entry {
        name: "arrivals",
        about: "Deliveries from vendors that wait for their commit",
        anonymous: "",
        known: "256 of an organization, and no more than stay free",
        together: "1,024",
        beyond: "503",
    },
    Entry {
        name: "mail_bytes",
        about: "Bytes of mails being read, three for each byte received; only mails over 64 KiB count",
        anonymous: "",
        known: "an eighth, or one mail; an organization's channels can hold at most as much as stays free",
        together: "256 MiB",
        beyond: "the mail waits, up to a minute, and is tried again later. While memory is held for its answer, a mail server must send 64 KiB/s until the answer ends, or its session ends",
    },
    Entry {
        name: "schema_bytes",
        about: "Introspection in one request (`src/read/budget.rs`)",
        anonymous: "2 MiB, in a batch of 3 operations",
        known: "2 MiB, in a batch of {limits.graphql_batch}",
        together: "",
        beyond: "`QUERY_TOO_COMPLEX`",
    },
    Entry {
        name: "documents",
        about: "Bytes of cached GraphQL documents (`src/api/graphql/documents.rs`)",
        anonymous: "0",
        known: "",
        together: "{limits.document_cache_bytes}",
        beyond: "the least recently used are dropped",
    },
];
