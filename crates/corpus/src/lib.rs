//! What agents and people say in seeded data: plausible, varied, and the same for the same numbers.
//!
//! A text is a template with placeholders in braces. The facts of a turn (an order, a product, an amount …) fill them,
//! so that the texts of one turn belong together and references such as `ORD-48213` can be searched for.

use std::fmt::Write;

mod random;

pub use self::random::Random;

/// Labels and descriptions of options.
type Options = &'static [(&'static str, &'static str)];

/// A field of work: an agent has one, and its conversations are about it.
pub struct Topic {
    /// The role of such agents.
    pub role: &'static str,
    /// What such agents do, in a sentence.
    pub about: &'static str,
    /// Their names.
    pub names: &'static [&'static str],
    /// Titles of conversations.
    pub titles: &'static [&'static str],
    /// What people ask.
    pub asks: &'static [&'static str],
    /// What the agent thinks.
    pub thoughts: &'static [&'static str],
    /// Tools: name, input and output (JSON).
    pub tools: &'static [(&'static str, &'static str, &'static str)],
    /// What the agent answers.
    pub answers: &'static [&'static str],
    /// What it asks a person: title, text, and options with descriptions.
    pub questions: &'static [(&'static str, &'static str, Options)],
    /// What it wants to do: title, tool, input (JSON), category.
    pub actions: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// The facts of one turn.
pub struct Facts {
    order: u64,
    amount: u64,
    product: &'static str,
    city: &'static str,
    person: String,
    day: u64,
    month: &'static str,
    host: u64,
}

impl Facts {
    /// New facts.
    pub fn new(random: &mut Random) -> Self {
        Self {
            order: 10_000 + random.below(9_990_000),
            amount: 900 + random.below(240_000),
            product: random.pick(PRODUCTS),
            city: random.pick(CITIES),
            person: person(random),
            day: 1 + random.below(28),
            month: random.pick(MONTHS),
            host: 1 + random.below(96),
        }
    }

    /// The template with its placeholders filled in.
    pub fn fill(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len() + 32);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('<') {
            out.push_str(before);
            let (slot, after) = after.split_once('>').unwrap_or((after, ""));
            self.slot(slot, &mut out);
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn slot(&self, slot: &str, out: &mut String) {
        // Writing to a string can't fail.
        let _ = match slot {
            "order" => write!(out, "ORD-{}", self.order),
            "number" => write!(out, "{}", self.order),
            "amount" => write!(out, "{}.{:02}", self.amount / 100, self.amount % 100),
            "product" => out.write_str(self.product),
            "city" => out.write_str(self.city),
            "person" => out.write_str(&self.person),
            "date" => write!(out, "{} {}", self.day, self.month),
            "month" => out.write_str(self.month),
            "host" => write!(out, "node-{:02}", self.host),
            "percent" => write!(out, "{}", 3 + self.order % 95),
            _ => Ok(()),
        };
    }
}

/// A person's name.
pub fn person(random: &mut Random) -> String {
    format!("{} {}", random.pick(GIVEN), random.pick(FAMILY))
}

const GIVEN: &[&str] = &[
    "Amara", "Anders", "Aylin", "Beatriz", "Chidi", "Dana", "Elif", "Emil", "Farah", "Goran", "Hana", "Ines",
    "Ivo", "Jana", "Jonas", "Kofi", "Lena", "Luca", "Maja", "Mateo", "Mina", "Nadia", "Noor", "Olga",
    "Pavel", "Priya", "Renée", "Rosa", "Samir", "Sofia", "Tariq", "Thandi", "Tomás", "Ulla", "Viktor",
    "Wanja", "Yuki", "Zoë",
];
const FAMILY: &[&str] = &[
    "Adeyemi",
    "Almeida",
    "Bauer",
    "Becker",
    "Costa",
    "Demir",
    "Dubois",
    "Eriksen",
    "Ferrari",
    "García",
    "Haddad",
    "Horvat",
    "Ivanova",
    "Jansen",
    "Kaya",
    "Kowalski",
    "Lindqvist",
    "Meyer",
    "Moreau",
    "Müller",
    "Nakamura",
    "Novák",
    "Okafor",
    "Olsen",
    "Papadakis",
    "Petrov",
    "Rahman",
    "Rossi",
    "Sato",
    "Schmidt",
    "Silva",
    "Tanaka",
    "Weber",
    "Yılmaz",
];
const CITIES: &[&str] = &[
    "Aarhus",
    "Berlin",
    "Bordeaux",
    "Brno",
    "Dublin",
    "Genève",
    "Gdańsk",
    "Hamburg",
    "Kraków",
    "Lisboa",
    "Lyon",
    "Malmö",
    "Milano",
    "Porto",
    "Rotterdam",
    "Sevilla",
    "Tallinn",
    "Utrecht",
    "Wien",
    "Zürich",
];
const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const PRODUCTS: &[&str] = &[
    "standing desk",
    "espresso grinder",
    "trail jacket",
    "wireless headset",
    "solar charger",
    "water filter",
    "cargo bike",
    "label printer",
    "thermal camera",
    "sleeping bag",
    "mesh router",
    "oak bookshelf",
    "rice cooker",
    "climbing rope",
    "desk lamp",
    "e-reader",
    "induction hob",
    "air purifier",
];

/// The fields of work.
pub const TOPICS: &[Topic] = &[
    Topic {
        role: "Customer support",
        about: "Answers customers about orders, deliveries and returns.",
        names: &["Courier", "Parcel", "Porter", "Harbour", "Signpost"],
        titles: &[
            "Where is <order>?",
            "Return of a <product>",
            "Damaged <product>",
            "Delivery to <city> is late",
        ],
        asks: &[
            "Hi, my order <order> was due on <date> and the tracking page has not moved for days. Can you check?",
            "The <product> arrived with a crack in the casing. I would like a replacement, not a refund.",
            "Can you change the delivery address of <order> to <city>? I am moving next week.",
            "I was charged <amount> twice for <order>. Please look into it.",
            "Is the <product> back in stock before <date>?",
            "Thanks, that helps. One more thing: can <person> pick it up instead of me?",
        ],
        thoughts: &[
            "The order number is complete, so I can look it up before I ask anything else.",
            "Two charges of the same amount within a minute look like a retried payment; I should check the payment log first.",
            "The return window ends on <date>; a replacement is still possible without approval.",
        ],
        tools: &[
            (
                "orders.lookup",
                r#"{"order":"<order>","include":["items","shipments"]}"#,
                r#"{"order":"<order>","state":"in_transit","item":"<product>","hub":"<city>","expected":"<date>"}"#,
            ),
            (
                "payments.search",
                r#"{"reference":"<order>","amount":"<amount>"}"#,
                r#"{"matches":2,"captured":1,"authorised_only":1,"amount":"<amount>"}"#,
            ),
            (
                "carrier.track",
                r#"{"parcel":"<number>"}"#,
                r#"{"parcel":"<number>","last_scan":"<city>","status":"held at customs"}"#,
            ),
        ],
        answers: &[
            "I found **<order>**: the parcel is held at the hub in <city> and is expected on <date>. I will watch it and write to you as soon as it moves.",
            "I am sorry about the <product>. A replacement leaves our warehouse in <city> today; you do not have to send the broken one back.",
            "Only one of the two charges was captured. The other authorisation over <amount> expires by itself, usually within three days.",
            "The address of <order> is changed to <city>. You will get a new confirmation by mail in a few minutes.",
            "Yes, <person> can pick it up with an identity card and the number <number>.",
        ],
        questions: &[
            (
                "Which replacement for <order>?",
                "The <product> of <order> is sold out in the ordered colour. What should I offer to <person>?",
                &[
                    ("Other colour", "Same model, available now"),
                    ("Refund", "The full amount"),
                    ("Wait", "Back in stock in about two weeks"),
                ],
            ),
            (
                "Accept a late return?",
                "<person> wants to return the <product>, four days after the window closed. Shall I accept it?",
                &[("Accept", "As a gesture"), ("Refuse", "Stay with the terms")],
            ),
        ],
        actions: &[
            (
                "Refund <amount> for <order>",
                "payments.refund",
                r#"{"order":"<order>","amount":"<amount>","reason":"damaged"}"#,
                "payments",
            ),
            ("Cancel <order>", "orders.cancel", r#"{"order":"<order>","notify":true}"#, "orders"),
        ],
    },
    Topic {
        role: "Site reliability",
        about: "Watches services, looks into alerts and proposes fixes.",
        names: &["Beacon", "Watchtower", "Lantern", "Keel", "Ballast"],
        titles: &[
            "Alert on <host>",
            "Latency in <city> region",
            "Disk nearly full on <host>",
            "Post-mortem of <date>",
        ],
        asks: &[
            "<host> has been paging since this morning. What is going on?",
            "Error rate of the checkout service went to <percent> percent after the deploy. Roll back?",
            "Please write a short summary of the outage on <date> for the status page.",
            "How much disk is left on <host>, and what grows?",
            "Can we move the nightly backup away from the hour when the reports run?",
        ],
        thoughts: &[
            "The pager fired on memory, but the deploy happened twelve minutes before; I should compare both builds.",
            "Rolling back is cheap here, the migration of build <number> is additive.",
            "Before I restart anything I need to know whether <host> holds the leader lease.",
        ],
        tools: &[
            (
                "metrics.query",
                r#"{"query":"rate(http_errors_total{host=\"<host>\"}[5m])","range":"1h"}"#,
                r#"{"host":"<host>","samples":60,"max":<percent>,"trend":"rising"}"#,
            ),
            (
                "shell.run",
                r#"{"host":"<host>","command":"df -h /var/lib"}"#,
                r#"{"exit_code":0,"stdout":"/dev/vda1  200G  <percent>%  /var/lib"}"#,
            ),
            (
                "deploys.list",
                r#"{"service":"checkout","limit":3}"#,
                r#"{"deploys":[{"build":<number>,"by":"<person>","state":"done"}]}"#,
            ),
        ],
        answers: &[
            "Build **<number>** raised memory use on <host> by <percent> percent. I suggest rolling back now and trying again with the smaller cache.",
            "The disk of <host> is <percent> percent full; write-ahead logs are the part that grows. A replica in <city> has been disconnected since <date>.",
            "Summary: on <date> the checkout service answered slowly for 23 minutes, because a certificate in <city> had expired. No orders were lost.",
            "The backup now begins at 03:40, after the reports have finished. I will compare the load tomorrow.",
        ],
        questions: &[(
            "Which node to drain first?",
            "Both <host> and its neighbour need the kernel update. Which one should I drain first?",
            &[
                ("<host>", "Fewer connections right now"),
                ("The neighbour", "Leave <host> for tonight"),
                ("Neither", "Not today"),
            ],
        )],
        actions: &[
            (
                "Restart the checkout service on <host>",
                "shell.run",
                r#"{"host":"<host>","command":"systemctl restart checkout"}"#,
                "infrastructure",
            ),
            (
                "Delete write-ahead logs on <host>",
                "shell.run",
                r#"{"host":"<host>","command":"pg_archivecleanup /var/lib/wal <number>"}"#,
                "destructive",
            ),
        ],
    },
    Topic {
        role: "Code review",
        about: "Reviews changes, runs the tests and answers questions about the code.",
        names: &["Linter", "Redpen", "Quill", "Marginalia", "Compass"],
        titles: &[
            "Review of #<number>",
            "Flaky test in <product> service",
            "Upgrade of the HTTP client",
            "Refactor proposal",
        ],
        asks: &[
            "Could you review #<number>? I am unsure about the locking in the cache.",
            "The integration test fails one time in twenty since <date>. Any idea?",
            "Please bump the HTTP client and tell me what breaks.",
            "Why do we retry here at all? The caller retries as well.",
            "Good point. Can you open a follow-up for <person>?",
        ],
        thoughts: &[
            "The lock is taken before the await point, so two tasks can wait for each other; let me look at the callers.",
            "The failing assertion compares timestamps with millisecond precision; that explains why it is rare.",
            "Retries multiply: three here and three in the caller are nine requests in the worst case.",
        ],
        tools: &[
            (
                "repository.diff",
                r#"{"pull_request":<number>,"context":5}"#,
                r#"{"files":4,"additions":<percent>,"deletions":12,"author":"<person>"}"#,
            ),
            (
                "tests.run",
                r#"{"filter":"cache","repeat":20}"#,
                r#"{"passed":19,"failed":1,"seconds":41,"seed":<number>}"#,
            ),
            (
                "search.code",
                r#"{"query":"retry_with_backoff","limit":10}"#,
                r#"{"matches":7,"first":"src/client/retry.rs"}"#,
            ),
        ],
        answers: &[
            "I left three comments on #<number>. The important one: the guard lives across an await, so a slow upstream blocks every reader.",
            "The test depends on the order of a hash map. With seed <number> it fails every time; sorting the keys before the comparison fixes it.",
            "The upgrade changes two defaults: redirects are no longer followed, and the pool keeps idle connections for 90 seconds. I prepared a branch.",
            "Both layers retry, which makes nine attempts. I would keep the outer one and let the inner one fail fast.",
        ],
        questions: &[(
            "How shall I name the module?",
            "The new code of #<number> fits neither the client nor the cache. Where should it live?",
            &[
                ("transport", "Beside the sockets"),
                ("session", "It holds state of a session"),
                ("A separate crate", "It may be reused"),
            ],
        )],
        actions: &[
            (
                "Push to the branch of #<number>",
                "repository.push",
                r#"{"pull_request":<number>,"branch":"fix/ordering","force":false}"#,
                "code",
            ),
            ("Merge #<number>", "repository.merge", r#"{"pull_request":<number>,"method":"squash"}"#, "code"),
        ],
    },
    Topic {
        role: "Bookkeeping",
        about: "Matches invoices and payments and prepares the monthly close.",
        names: &["Ledger", "Tally", "Abacus", "Folio", "Voucher"],
        titles: &[
            "Invoice <number>",
            "Open items in <month>",
            "Missing receipt from <city>",
            "Monthly close",
        ],
        asks: &[
            "Invoice <number> from <person> over <amount> is still open. Was it paid?",
            "Please match the bank statement of <date>.",
            "Which receipts are missing for the trip to <city>?",
            "Can you prepare the list of open items for the auditor?",
        ],
        thoughts: &[
            "The amount differs by the bank's fee; within two euros I may book the difference myself.",
            "The supplier changed the bank account last week, so I should ask before I prepare a payment.",
        ],
        tools: &[
            (
                "ledger.search",
                r#"{"invoice":"<number>","open_only":true}"#,
                r#"{"invoice":"<number>","open":"<amount>","due":"<date>","supplier":"<person>"}"#,
            ),
            (
                "bank.statement",
                r#"{"date":"<date>","account":"main"}"#,
                r#"{"lines":<percent>,"unmatched":2,"largest":"<amount>"}"#,
            ),
        ],
        answers: &[
            "Invoice <number> over <amount> was paid on <date>; the reference was missing, so it was not matched. I have matched it now.",
            "All but two lines are matched. One is a card payment in <city> without a receipt, the other a refund for a <product>.",
            "The list for the auditor holds 14 open items, <amount> in total. The oldest one waits for an answer of <person>.",
        ],
        questions: &[(
            "Which account for the <product>?",
            "The <product> over <amount> may be booked as equipment or as an expense. Which one?",
            &[("Equipment", "Written off over three years"), ("Expense", "Whole amount this year")],
        )],
        actions: &[(
            "Pay invoice <number> (<amount>)",
            "bank.transfer",
            r#"{"invoice":"<number>","amount":"<amount>","to":"<person>"}"#,
            "payments",
        )],
    },
    Topic {
        role: "Research",
        about: "Reads sources, compares them and writes summaries.",
        names: &["Atlas", "Scout", "Almanac", "Sextant", "Gazette"],
        titles: &[
            "Market for a <product> in <city>",
            "Summary of the interviews",
            "Comparison of suppliers",
            "Reading list",
        ],
        asks: &[
            "What do people in <city> pay for a <product>, and who are the main suppliers?",
            "Summarise the interview with <person> in five sentences.",
            "Compare the three offers of <date> and name the differences that matter.",
            "Which of these sources can we trust?",
        ],
        thoughts: &[
            "Two of the sources copy the same press release; counting them twice would be misleading.",
            "The price of <amount> includes taxes in one offer and not in the others.",
        ],
        tools: &[
            (
                "web.search",
                r#"{"query":"<product> price <city>","results":8}"#,
                r#"{"results":8,"first":"https://example.org/<number>"}"#,
            ),
            (
                "documents.read",
                r#"{"document":<number>,"pages":"1-4"}"#,
                r#"{"pages":4,"words":2100,"language":"en"}"#,
            ),
        ],
        answers: &[
            "A <product> costs around <amount> in <city>. Three suppliers share <percent> percent of the market; the smallest of them delivers fastest.",
            "<person> mentioned the delivery times twice and the price not once. The strongest quote is on page 3: “we would pay more if we could rely on the date”.",
            "The offers differ in the term of notice and in who pays for shipping. Over two years the second one is cheaper by <amount>.",
        ],
        questions: &[(
            "How deep should I go?",
            "I found 40 papers about the <product>. Shall I read all of them or the ten most cited ones?",
            &[("All", "About two hours"), ("Ten", "About twenty minutes")],
        )],
        actions: &[(
            "Send the summary to <person>",
            "mail.send",
            r#"{"to":"<person>","subject":"Summary <number>","attachments":1}"#,
            "communication",
        )],
    },
    Topic {
        role: "Scheduling",
        about: "Finds times, sends invitations and keeps calendars tidy.",
        names: &["Metronome", "Tempo", "Sundial", "Pendulum", "Cadence"],
        titles: &[
            "Meeting with <person>",
            "Trip to <city>",
            "Moving the review of <date>",
            "Room for the workshop",
        ],
        asks: &[
            "Find 45 minutes with <person> before <date>, please, not on a Monday.",
            "I have to be in <city> on <date> at noon. Which train?",
            "Move the review to the week after and tell everybody why.",
            "Is there a room for twelve people with a projector?",
        ],
        thoughts: &[
            "Their calendar shows travel on <date>; the morning before is free on both sides.",
            "The only early train leaves at 05:40, which I should point out before I book it.",
        ],
        tools: &[
            (
                "calendar.free_busy",
                r#"{"people":["<person>"],"until":"<date>","minutes":45}"#,
                r#"{"slots":3,"first":"<date> 10:30","zone":"Europe/Berlin"}"#,
            ),
            (
                "rail.search",
                r#"{"to":"<city>","arrive_by":"12:00","date":"<date>"}"#,
                r#"{"connections":4,"fastest_minutes":212,"price":"<amount>"}"#,
            ),
        ],
        answers: &[
            "<person> and you are both free on <date> at 10:30. I have sent the invitation and kept 15 minutes before it clear.",
            "The 07:14 arrives in <city> at 11:02 and costs <amount>. A later one would leave you twelve minutes; I would not risk it.",
            "The review has moved by a week. Everybody but <person> has accepted already.",
        ],
        questions: &[(
            "Which slot suits better?",
            "<person> offers two slots around <date>. Which one shall I take?",
            &[("Morning", "10:30, before the board"), ("Afternoon", "15:00, after the visit")],
        )],
        actions: &[(
            "Book the train to <city> (<amount>)",
            "rail.book",
            r#"{"to":"<city>","date":"<date>","price":"<amount>"}"#,
            "travel",
        )],
    },
];

#[cfg(test)]
mod tests {
    use super::{Facts, Random, TOPICS};

    #[test]
    fn every_template_is_filled_and_every_json_parses() {
        let mut random = Random::new(&[1]);
        for topic in TOPICS {
            let facts = Facts::new(&mut random);
            let texts = [topic.titles, topic.asks, topic.thoughts, topic.answers].concat();
            for text in texts {
                assert!(!facts.fill(text).contains(['<', '>']), "{text}");
            }
            let inputs = topic.tools.iter().flat_map(|(_, input, output)| [*input, *output]);
            for json in inputs.chain(topic.actions.iter().map(|(_, _, input, _)| *input)) {
                let filled = facts.fill(json);
                assert!(serde_json::from_str::<serde_json::Value>(&filled).is_ok(), "{filled}");
            }
        }
    }
}
