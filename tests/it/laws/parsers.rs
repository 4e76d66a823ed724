//! All our parsers accept any text: they judge it, never panic, and read back what they wrote. For those of
//! requests see `api/any_bytes.rs`; for the policy's grammar `src/core/policy`.

use std::{collections::BTreeMap, fs, sync::OnceLock};

use muster::{
    api::{
        graphql::Documents,
        middleware::bearer_of,
        rest::{Given, Routes},
    },
    base::time::Timestamp,
    core::{
        access::token::{Token, TokenKind},
        audit::{PublicKey, Verifier},
        config::{Config, RequestLimits},
        policy,
        sealing::KeyFile,
    },
    resolvers::Catalogue,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use secrecy::ExposeSecret;

/// Any text, and text close to `like`.
fn near(like: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "\\PC{0,200}",
        1 => proptest::collection::vec(any::<char>(), 0..60).prop_map(String::from_iter),
        3 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), "\\PC{0,3}|[\\x00-\\x1f]").prop_map(
            move |(from, to, put)| {
                let chars: Vec<char> = like.chars().collect();
                let (from, to) = (from.index(chars.len() + 1), to.index(chars.len() + 1));
                let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 12));
                let (before, after): (String, String) =
                    (chars[..from].iter().collect(), chars[to..].iter().collect());
                format!("{before}{put}{after}")
            }
        ),
    ]
}

const POLICY: &str = include_str!("../../../policies/policy.csv");
const PLANS: &str = include_str!("../../../src/core/config/plans.toml");

fn config() -> Config {
    Config::read(None, BTreeMap::new()).unwrap()
}

/// Parses requests to `/v1`.
fn routes() -> &'static (Catalogue, Routes) {
    static READ: OnceLock<(Catalogue, Routes)> = OnceLock::new();
    READ.get_or_init(|| {
        let catalogue = muster::graphql::catalogue().unwrap();
        let routes = Routes::load(&catalogue).unwrap();
        (catalogue, routes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_file_is_accepted_or_its_bad_lines_are_named(text in near(POLICY), org in near("p, VIEWER, agent.edit, allow\n")) {
        let folder = tempfile::tempdir().unwrap();
        muster::cli::write_defaults(folder.path()).unwrap();
        fs::write(folder.path().join("policy.csv"), &text).unwrap();
        fs::create_dir_all(folder.path().join("orgs")).unwrap();
        fs::write(folder.path().join("orgs/7.csv"), org).unwrap();
        let report = policy::check(folder.path());
        let loaded = policy::Policy::load(folder.path());
        prop_assert!(!report.ok || loaded.is_ok(), "{}", report);
    }

    #[test]
    fn settings_are_accepted_or_each_mistake_is_named(text in near(muster::core::config::DEFAULT)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("muster.toml");
        fs::write(&path, &text).unwrap();
        if let Err(error) = Config::read(Some(&path), BTreeMap::new()) {
            prop_assert!(!error.0.is_empty());
        }
    }

    #[test]
    fn variables_are_accepted_or_named(name in 0_usize..100, value in near("postgres://user:pass@host:5432/db?x=y")) {
        let setting = muster::core::config::SETTINGS[name % muster::core::config::SETTINGS.len()];
        let variables = BTreeMap::from([(setting.variable.to_owned(), value)]);
        if let Err(error) = Config::read(None, variables) {
            prop_assert!(!error.0.is_empty() && !error.to_string().contains("user:pass"), "{error}");
        }
    }

    #[test]
    fn plans_are_accepted_or_refused(text in near(PLANS)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plans.toml");
        fs::write(&path, &text).unwrap();
        let mut config = config();
        config.plans_file = Some(path);
        let _ = config.plans();
    }

    #[test]
    fn a_key_file_is_accepted_or_refused_and_never_repeated(text in near(
        "[sealing]\nactive = 1\n[[sealing.keys]]\nid = 1\nkey = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n\
         [signing]\nactive = \"a\"\n[[signing.keys]]\nkid = \"a\"\nseed = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n"
    )) {
        if let Err(error) = KeyFile::parse(&text) {
            prop_assert!(!error.to_string().contains("AAAAAAAA"), "{error}");
        }
    }

    #[test]
    fn timestamps_round_trip_or_are_refused(text in near("2026-01-31T08:00:00.000+02:00"), at in 0_i64..253_402_300_799_999) {
        if let Ok(read) = text.parse::<Timestamp>() {
            let _ = read.to_string();
        }
        prop_assert_eq!(Timestamp(at).to_string().parse::<Timestamp>().unwrap(), Timestamp(at));
    }

    #[test]
    fn a_public_key_and_an_export_are_judged(text in near("{\"type\":\"entry\",\"seq\":1,\"hash\":\"00\",\"prev_hash\":\"é\"}")) {
        let _ = PublicKey::parse(&text);
        let mut verifier = Verifier::new(Some(1), &[]);
        match serde_json::from_str(&text) {
            Ok(line) => verifier.take_line(line),
            Err(error) => verifier.unreadable(&error.to_string()),
        }
        prop_assert!(!verifier.finish(None, 0).ok);
    }

    #[test]
    fn a_document_is_accepted_or_refused(text in near(
        "query Q($a: Int = 1, $b: [Id!]!) { agents(orgId: 1, page: $a, limit: 10) @skip(if: false) { ...F data { id } } } fragment F on X { y }"
    )) {
        let limits: RequestLimits = config().limits;
        let _ = Documents::new(&limits).get(&text, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_yields_variables_or_says_what_is_wrong(
        route in any::<prop::sample::Index>(), id in "[0-9]{1,20}|\\PC{0,8}",
        query in near("page=1&limit=50&before_seq=7&q=a%20b+c"), body in near("{\"name\": \"a\", \"agent_ids\": [1, 2], \"force\": true}")
    ) {
        let (catalogue, routes) = routes();
        let all: Vec<_> = routes.iter().collect();
        let (route, operation) = all[route.index(all.len())];
        let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let path = names.map(|name| (name, id.as_str())).collect();
        match operation.variables(&Given { path, query: &query, body: body.as_bytes() }, catalogue) {
            Ok(variables) => {
                let known = |name: &str| operation.inputs.iter().any(|input| input.variable == name);
                prop_assert!(variables.keys().all(|name| known(name)));
            }
            Err(problem) => prop_assert!(problem.code.status().is_client_error(), "{}", problem.detail),
        }
    }

    #[test]
    fn query_parameters_reach_the_operation_unchanged(q in "[^\\x00]{1,200}", org in 1_i64..1 << 53) {
        let (catalogue, routes) = routes();
        let (_, search) = routes.iter().find(|(route, _)| route.path.ends_with("/message/search")).unwrap();
        let (number, query) = (org.to_string(), format!("q={}", utf8_percent_encode(&q, NON_ALPHANUMERIC)));
        let path = ["org_id", "agent_id", "conversation_id"].map(|name| (name, number.as_str())).into();
        let variables = search.variables(&Given { path, query: &query, body: b"" }, catalogue).unwrap();
        prop_assert_eq!(&variables["q"], &async_graphql::Value::from(q));
        prop_assert_eq!(&variables["orgId"], &async_graphql::Value::from(org));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_a_token_is_a_token(text in near("mst_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP")) {
        prop_assert!(Token::parse(&text).is_none());
        let _ = (bearer_of(&text), Token::hint(&text));
    }

    #[test]
    fn a_token_with_one_letter_changed_is_invalid(at in any::<prop::sample::Index>(), letter in any::<char>()) {
        let (token, hash) = Token::generate(TokenKind::Service);
        let mut text: Vec<char> = token.expose_secret().chars().collect();
        prop_assert_eq!(Token::parse(token.expose_secret()).map(|token| token.hash), Some(hash));
        let at = at.index(text.len());
        if text[at] != letter {
            text[at] = letter;
            prop_assert!(Token::parse(&String::from_iter(text)).is_none());
        }
    }
}
