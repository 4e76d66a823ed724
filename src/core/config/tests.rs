use std::collections::{BTreeMap, BTreeSet};

use figment::{Figment, providers::Serialized};
use secrecy::ExposeSecret;

use super::*;
use crate::base::enums::Plan;

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("muster.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn mistakes(file: &str, pairs: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, file);
    let ConfigError(mistakes) = Config::read(Some(&path), variables(pairs)).unwrap_err();
    // Without the file and the line in front.
    let shown = format!("{}:", path.display());
    let bare = |mistake: &String| {
        let place = mistake.strip_prefix(&shown).and_then(|mistake| mistake.split_once(": "));
        place.map_or_else(|| mistake.clone(), |(_, bare)| bare.to_owned())
    };
    mistakes.iter().map(bare).collect()
}

#[test]
fn the_defaults_are_what_the_documentation_says() {
    let config = Config::read(None, BTreeMap::new()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.database.url.expose_secret(), "sqlite://./data/muster.db");
    assert!(config.database.is_sqlite() && config.introspection && config.public_url.is_none());
    assert_eq!(config.keys_file, Path::new("./data/keys.toml"));
    assert_eq!((config.limits.body_bytes, config.limits.attachment_bytes), (1 << 20, 25 << 20));
    assert_eq!((config.log.format, config.issuer()), (LogFormat::Text, "muster"));
}

#[test]
fn the_file_wins_over_the_defaults_and_a_variable_over_both() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        written(&folder, "data_dir = \"/srv/m?ster\"\n[limits]\ngraphql_depth = 20\ngraphql_batch = 2");
    let given = variables(&[
        ("MUSTER_LIMITS_GRAPHQL_BATCH", "3"),
        ("MUSTER_INTROSPECTION", "false"),
        ("MUSTER_LOG_FORMAT", "json"),
        ("MUSTER_PUBLIC_URL", "https://muster.example/"),
        ("MUSTER_POLICY_DIR", ""),
        ("MUSTER_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("MUSTER_HOST_ENGINE", "/run/podman/podman.sock"),
        ("MUSTER_CONFIG", path.to_str().unwrap()),
    ]);
    for config in [Config::read(None, given.clone()).unwrap(), Config::read(Some(&path), given).unwrap()] {
        let limits = &config.limits;
        assert_eq!((limits.graphql_depth, limits.graphql_batch, limits.graphql_aliases), (20, 3, 100));
        assert_eq!((config.introspection, config.log.format), (false, LogFormat::Json));
        assert_eq!(config.database.url.expose_secret(), "sqlite:///srv/m%3Fster/muster.db");
        assert_eq!(config.keys_file, Path::new("/srv/m?ster/keys.toml"));
        assert_eq!((config.issuer(), &config.policy_dir), ("https://muster.example", &None));
    }
}

#[test]
fn every_mistake_is_named_at_once() {
    let file = "lisen = \"x\"\nlog = \"debug\"\nbody_bytes = 5\nkeys = \"k\"\n[limits]\ngraphql_dept = 3\ngraphql_batch = \"many\"\n[data]\nx = 1";
    let given = [
        ("MUSTER_DATABSE_URL", "x"),
        ("MUSTER_FOO", "x"),
        ("MUSTER_LISTEN", "8080"),
        ("MUSTER_LOG_FORMAT", "xml"),
    ];
    assert_eq!(
        mistakes(file, &given).into_iter().collect::<BTreeSet<_>>(),
        [
            "unknown setting lisen (did you mean listen?)",
            "log must be a section: write [log]",
            "unknown setting body_bytes (did you mean limits.body_bytes?)",
            "unknown setting keys (did you mean keys_file?)",
            "unknown setting limits.graphql_dept (did you mean limits.graphql_depth?)",
            "limits.graphql_batch must be a whole number from 1 to 1000",
            "unknown setting data (did you mean data_dir?)",
            "unknown variable MUSTER_DATABSE_URL (did you mean MUSTER_DATABASE_URL?)",
            "unknown variable MUSTER_FOO",
            "MUSTER_LISTEN must be an IP address and a port: 127.0.0.1:9000",
            "MUSTER_LOG_FORMAT must be one of: text, json",
        ]
        .map(str::to_owned)
        .into()
    );
}

#[test]
fn every_kind_of_value_is_checked() {
    for setting in SETTINGS {
        for wrong in
            ["", "\u{0}", "\n", " ", "=", "maybe", "-1", "99999999999999999999", "ftp://x", "muster=loud"]
        {
            let config = Config::read(None, variables(&[(setting.variable, wrong)]));
            // Any text is a path, a name or a secret.
            let any = matches!(setting.kind, Kind::Path | Kind::Text | Kind::Secret);
            let list = matches!(setting.kind, Kind::CodeHosts | Kind::Networks | Kind::Hosts | Kind::Origins);
            let blank = list && wrong.trim().is_empty();
            let taken = wrong.is_empty() || any || blank;
            // Most words could be a host name.
            assert!(
                config.is_err() || taken || setting.kind == Kind::Hosts,
                "{} {wrong:?}",
                setting.variable
            );
            assert!(config.is_ok() || !taken, "{} {wrong:?}", setting.variable);
        }
    }
    for url in
        ["https://a@b.example", "https://x.example/?a", "/x", "https://x.example/#y", "https://x.example/a"]
    {
        assert!(Config::read(None, variables(&[("MUSTER_PUBLIC_URL", url)])).is_err(), "{url}");
    }
    for (filter, is_good) in [
        ("warn,sqlx=off", true),
        ("INFO", true),
        ("inof", false),
        ("info,sqlx", false),
        ("info, sqlx=off", false),
    ] {
        let config = Config::read(None, variables(&[("MUSTER_LOG", filter)]));
        assert_eq!(config.is_ok(), is_good, "{filter}");
    }
    for url in ["sqlite:", "sqlite://", "mysql://x"] {
        assert!(Config::read(None, variables(&[("MUSTER_DATABASE_URL", url)])).is_err(), "{url}");
    }
    assert!(Config::read(None, variables(&[("MUSTER_DATABASE_MIN_CONNECTIONS", "17")])).is_err());
    assert!(Config::read(Some(Path::new("/nowhere/muster.toml")), BTreeMap::new()).is_err());
}

#[test]
fn no_secret_is_printed() {
    let secret = "hunter2hunter2";
    let url = format!("postgres://muster:{secret}@db/muster");
    let config =
        Config::read(None, variables(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_KEYS", secret)])).unwrap();
    assert_eq!(config.database.url.expose_secret(), url);
    let shown = format!("{config:?} {:?}", config.keys());
    assert!(!shown.contains(secret), "{shown}");
    for file in [
        format!("[database]\nurl = {url}"),
        format!("[database]\nurl = \"{url}"),
        format!("[database]\nurl = [\"{url}\"]"),
        format!("[database]\nurl = \"mysql://{secret}\""),
        format!("[database]\nuri = \"{url}\""),
        format!("database = \"{url}\""),
    ] {
        let mistakes = mistakes(&file, &[("MUSTER_DATABASE_URL", secret)]).join("\n");
        assert!(!mistakes.contains("hunter2"), "{mistakes}");
    }
}

#[test]
fn a_mistake_comes_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        written(&folder, "listen = \"127.0.0.1:80\"\n\n[limits]\ngraphql_depth = 1\n[log]\nfiltre = 3\n");
    let ConfigError(mistakes) = Config::read(Some(&path), BTreeMap::new()).unwrap_err();
    let name = path.display();
    let expected = [
        format!("{name}:4: limits.graphql_depth must be a whole number from 3 to 100"),
        format!("{name}:6: unknown setting log.filtre (did you mean log.filter?)"),
    ];
    assert_eq!(mistakes, expected);
    // Also where the setting contradicts another one.
    let path = written(&folder, "\n[metrics]\nlisten = \"127.0.0.1:8080\"\n");
    let ConfigError(mistakes) = Config::read(Some(&path), BTreeMap::new()).unwrap_err();
    let same = "metrics.listen: the same as listen; choose another address";
    assert_eq!(mistakes, [format!("{name}:3: {same}")]);
    let given = variables(&[("MUSTER_METRICS_LISTEN", "127.0.0.1:8080")]);
    let ConfigError(mistakes) = Config::read(None, given).unwrap_err();
    assert_eq!(mistakes, [format!("MUSTER_METRICS_LISTEN: {same}")]);
    let config = Config::read(None, variables(&[("MUSTER_METRICS_LISTEN", "127.0.0.1:9464")])).unwrap();
    let ConfigError(mistakes) = config.serving_on("127.0.0.1:9464".parse().unwrap()).unwrap_err();
    assert_eq!(mistakes, [same]);
}

/// A valid value of a secret setting.
fn secret_value(kind: Kind) -> &'static str {
    match kind {
        Kind::DatabaseUrl => "postgres://muster:hunter2@db/muster",
        Kind::MailUrl => "smtps://muster:hunter2@mail.example.com",
        Kind::Secret => "GOCSPX-hunter2",
        _ => panic!("{kind:?}: add a value"),
    }
}

#[test]
fn every_secret_setting_has_a_file() {
    let secrets: Vec<_> = SETTINGS.iter().filter(|setting| setting.kind.is_secret()).collect();
    let of_file = |secret: &Setting| {
        let (key, variable) = (format!("{}_file", secret.key), format!("{}_FILE", secret.variable));
        SETTINGS
            .iter()
            .any(|file| file.key == key && file.variable == variable && file.kind == Kind::SecretFile)
    };
    for secret in &secrets {
        assert!(of_file(secret), "{} needs a line {}_file", secret.key, secret.key);
    }
    let files = SETTINGS.iter().filter(|setting| setting.kind == Kind::SecretFile);
    assert_eq!(files.filter(|file| file.secret().is_some()).count(), secrets.len());
    // The keys have theirs.
    assert!(SETTINGS.iter().any(|setting| setting.variable == "MUSTER_KEYS_FILE"));
    // Fields of the structs are secrets exactly if their settings are. The last two are not in the table.
    let mut fields = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/core/config")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines = text.lines().filter_map(|line| line.trim().trim_start_matches("pub ").split_once(": "));
        let kept = lines.filter(|(_, kind)| ["SecretString,", "Option<SecretString>,"].contains(kind));
        fields.extend(kept.map(|(field, _)| field.trim_start_matches("pub(super) ").to_owned()));
    }
    let mut expected: Vec<_> =
        secrets.iter().map(|secret| secret.key.rsplit('.').next().unwrap().to_owned()).collect();
    // The text of MUSTER_KEYS is in the layers and in the settings.
    expected.extend(["client_secret", "keys", "keys"].map(str::to_owned));
    fields.sort();
    expected.sort();
    assert_eq!(fields, expected);
}

#[test]
fn a_secret_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let name = file.to_str().unwrap();
    let others = [("MUSTER_MAIL_FROM", "a@example.com"), ("MUSTER_PUBLIC_URL", "https://muster.example")];
    for secret in SETTINGS.iter().filter(|setting| setting.kind.is_secret()) {
        let value = secret_value(secret.kind);
        let variable = format!("{}_FILE", secret.variable);
        let given =
            |more: &[(&str, &str)]| variables(&[&others[..], &[(variable.as_str(), name)], more].concat());
        let read = |given: BTreeMap<String, String>| {
            let config = Config::read(None, given)?;
            let Config { mail, channels, database, .. } = &config;
            let secrets = [
                Some(&database.url),
                mail.url.as_ref(),
                channels.google_client_secret.as_ref(),
                channels.github_client_secret.as_ref(),
                channels.github_app_key.as_ref(),
                channels.github_webhook_secret.as_ref(),
            ];
            Ok::<_, ConfigError>(secrets.map(|secret| secret.map(|text| text.expose_secret().to_owned())))
        };
        for (text, is_good) in [
            (format!("{value}\n"), true),
            (format!("{value}\r\n"), true),
            (value.to_owned(), true),
            (String::new(), false),
            ("\n".to_owned(), false),
            ("hunter2".to_owned(), false),
        ] {
            // Any text can be such a secret.
            if secret.kind == Kind::Secret && text == "hunter2" {
                continue;
            }
            std::fs::write(&file, &text).unwrap();
            match read(given(&[])) {
                Ok(found) => assert!(is_good && found.contains(&Some(value.to_owned())), "{text:?}"),
                Err(error) => {
                    assert!(!is_good && error.0.len() == 1, "{text:?}: {error}");
                    let shown = error.to_string();
                    assert!(shown.contains(&variable) && shown.contains(name), "{shown}");
                    assert!(!shown.contains("hunter2"), "{shown}");
                }
            }
        }
        std::fs::write(&file, value).unwrap();
        let both = read(given(&[(secret.variable, value)])).unwrap_err();
        let expected = format!("{variable}: {} and {}_file are both set; remove one", secret.key, secret.key);
        assert_eq!(both.0, [expected]);
        // An empty variable is unset, and a file's own setting gives way to a variable.
        assert!(read(given(&[(secret.variable, "")])).is_ok());
        let (section, key) = secret.key.split_once('.').unwrap();
        let path = written(&folder, &format!("[{section}]\n{key}_file = \"{name}\"\n"));
        let config = path.to_str().unwrap();
        let mut over = variables(&[&others[..], &[("MUSTER_CONFIG", config)]].concat());
        assert!(read(over.clone()).unwrap().contains(&Some(value.to_owned())));
        let other = value.replace("hunter2", "other");
        over.insert(secret.variable.to_owned(), other.clone());
        assert!(read(over.clone()).unwrap().contains(&Some(other)));
        std::fs::remove_file(&file).unwrap();
        let gone = read(over).unwrap_err();
        let expected = format!("{config}:2: the file is out of reach: No such file");
        assert!(gone.0.len() == 1 && gone.0[0].starts_with(&expected), "{gone}");
        assert!(gone.0[0].ends_with("Name a file that this user can read, with the secret only"), "{gone}");
        let mistaken = read(variables(&[(variable.as_str(), value)])).unwrap_err().to_string();
        assert!(mistaken.contains(&variable) && !mistaken.contains("hunter2"), "{mistaken}");
    }
}

#[test]
fn what_is_in_force_is_shown_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "postgres://muster:hunter2@db/muster\n").unwrap();
    let path =
        written(&folder, "data_dir = \"/srv/muster\"\n[limits]\ngraphql_depth = 20\ngraphql_batch = 2\n");
    let given = variables(&[
        ("MUSTER_LIMITS_GRAPHQL_BATCH", "3"),
        ("MUSTER_DATABASE_URL_FILE", secret.to_str().unwrap()),
        ("MUSTER_KEYS", "hunter2"),
    ]);
    let shown = layers::Layers::read(Some(&path), given).unwrap().shown();
    let named = |key: &str| shown.iter().find(|setting| setting.key == key).unwrap();
    let found = |key: &str| {
        let Shown { value, from, place, .. } = named(key);
        let text = value.as_ref().map(ToString::to_string).unwrap_or_default();
        (text, *from, place.clone().unwrap_or_default())
    };
    let at = |line: u32| format!("{}:{line}", path.display());
    assert_eq!(found("data_dir"), ("\"/srv/muster\"".to_owned(), Origin::File, at(1)));
    assert_eq!(found("limits.graphql_depth"), ("20".to_owned(), Origin::File, at(3)));
    let batch = "MUSTER_LIMITS_GRAPHQL_BATCH".to_owned();
    assert_eq!(found("limits.graphql_batch"), ("3".to_owned(), Origin::Variable, batch));
    let keys_file = ("\"/srv/muster/keys.toml\"".to_owned(), Origin::Default, String::new());
    assert_eq!(found("keys_file"), keys_file);
    assert_eq!(found("public_url"), (String::new(), Origin::Default, String::new()));
    let place = format!("MUSTER_DATABASE_URL_FILE ({})", secret.display());
    assert_eq!(found("database.url"), ("\"postgres://***@db/muster\"".to_owned(), Origin::Variable, place));
    assert_eq!(found("keys").0, "\"***\"");
    assert!(!format!("{shown:?}").contains("hunter2"));
    // Each setting once, and a secret's file with the secret.
    let settings = SETTINGS.iter().filter(|setting| setting.kind != Kind::SecretFile);
    assert_eq!(shown.len(), settings.count() + 1);
}

#[test]
fn a_service_for_others_has_tls_in_front() {
    for (given, is_in_clear) in [
        (&[("MUSTER_LISTEN", "0.0.0.0:8080")][..], true),
        (&[("MUSTER_LISTEN", "[::]:8080"), ("MUSTER_PUBLIC_URL", "http://muster.example")], true),
        (&[("MUSTER_LISTEN", "[::1]:8080")], false),
        (&[("MUSTER_LISTEN", "127.0.0.1:8080")], false),
        (&[("MUSTER_LISTEN", "0.0.0.0:8080"), ("MUSTER_PUBLIC_URL", "https://muster.example")], false),
        (&[("MUSTER_LISTEN", "0.0.0.0:8080"), ("MUSTER_TRUSTED_PROXIES", "10.0.0.7")], false),
    ] {
        assert_eq!(Config::read(None, variables(given)).unwrap().is_in_clear(), is_in_clear, "{given:?}");
    }
}

#[test]
fn table_documentation_and_structs_agree() {
    // Each setting is described with its variable, directly above its line.
    for Setting { key, variable, .. } in SETTINGS {
        let name = key.rsplit('.').next().unwrap();
        let described =
            DEFAULT.split(&format!("# {variable}: ")).nth(1).unwrap_or_else(|| panic!("{variable}"));
        let line =
            described.lines().find(|line| line.trim_start_matches("# ").starts_with(&format!("{name} = ")));
        let next = described.find("\n# MUSTER_").unwrap_or(described.len());
        assert!(
            line.is_some_and(|line| described.find(line).unwrap() < next),
            "{key} has no line of its own"
        );
    }
    // The structs' fields, as serde reports them, are exactly the settings of the table.
    let mut fields = BTreeSet::new();
    let sections = [
        "",
        "agents",
        "database",
        "log",
        "limits",
        "sessions",
        "metrics",
        "traces",
        "rate_limits",
        "mcp",
        "cors",
        "signing",
        "service_tokens",
        "policy",
        "channels",
        "email",
        "audit",
        "erasure",
        "mail",
    ];
    for section in sections {
        let at = if section.is_empty() { "zzz".to_owned() } else { format!("{section}.zzz") };
        let defaults: toml::Table = DEFAULT.parse().unwrap();
        let error = Figment::from(Serialized::defaults(defaults))
            .merge(Serialized::default(&at, 1))
            .extract::<Config>()
            .unwrap_err();
        let figment::error::Kind::UnknownField(_, known) = &error.kind else { panic!("{error}") };
        let prefix = if section.is_empty() { String::new() } else { format!("{section}.") };
        fields.extend(
            known.iter().filter(|field| !sections.contains(field)).map(|field| format!("{prefix}{field}")),
        );
    }
    // Files with secrets have been read before.
    let of_structs = SETTINGS.iter().filter(|setting| setting.kind != Kind::SecretFile);
    assert_eq!(fields, of_structs.map(|setting| setting.key.to_owned()).collect());
    // The optional ones are valid as well once uncommented, except for a secret's file beside the secret.
    let is_setting = |line: &&str| line.contains(" = \"") && !line.contains("/run/secrets/");
    let all: String = DEFAULT
        .lines()
        .map(|line| match line.strip_prefix("# ").filter(is_setting) {
            Some(setting) => format!("{setting}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let config = Config::read(Some(&written(&folder, &all)), BTreeMap::new()).unwrap();
    assert!(config.public_url.is_some() && config.policy_dir.is_some() && config.plans_file.is_some());
}

#[test]
fn a_browser_is_signed_in_for_no_longer_idle_than_at_most() {
    let file = "[sessions]\nbrowser_idle_days = 31\n";
    assert_eq!(mistakes(file, &[]), ["sessions.browser_idle_days: greater than browser_max_days"]);
}

#[test]
fn telegram_needs_an_address_to_send_to() {
    let file = "[channels]\ntelegram_webhooks = true\n";
    let expected = ["public_url: required with channels.telegram_webhooks, for Telegram to reach"];
    assert_eq!(mistakes(file, &[]), expected);
    let folder = tempfile::tempdir().unwrap();
    let file = format!("public_url = \"https://muster.example\"\n{file}");
    let config = Config::read(Some(&written(&folder, &file)), BTreeMap::new()).unwrap();
    assert!(config.channels.telegram_webhooks);
}

#[test]
fn keys_come_from_the_variable_or_a_generated_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::in_folder(folder.path()).unwrap();
    let made = config.keys().unwrap();
    let text = std::fs::read_to_string(folder.path().join("keys.toml")).unwrap();
    let given = Config::read(None, variables(&[("MUSTER_KEYS", &text)])).unwrap();
    assert_eq!(given.keys().unwrap().active_signing(), made.active_signing());
    assert!(given.keys_are_given() && !config.keys_are_given());
}

#[test]
fn plans_grow_and_a_file_changes_what_it_names() {
    let plans = Config::read(None, BTreeMap::new()).unwrap().plans().unwrap();
    let agents: Vec<_> = plans.iter().map(|(_, limits)| limits.max_agents).collect();
    assert_eq!(agents.len(), Plan::ALL.len());
    assert!(agents.is_sorted(), "{agents:?}");
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| Plans::read(Some(&written(&folder, text)));
    let changed = read("[FREE]\nmax_agents = 99").unwrap();
    let free = PlanLimits { max_agents: 99, ..*plans.limits(Plan::Free) };
    assert_eq!(changed.limits(Plan::Free), &free);
    assert_eq!(changed.limits(Plan::Pro), plans.limits(Plan::Pro));
    let ConfigError(mistakes) =
        read("PRO = 1\n[FRE]\nx = 1\n[FREE]\nmax_agent = 1\nmax_servers = -1\nmin_mail_poll_minutes = 0")
            .unwrap_err();
    assert_eq!(mistakes.len(), 5, "{mistakes:?}");
    assert!(mistakes.iter().any(|mistake| mistake.ends_with("unknown plan FRE (did you mean FREE?)")));
}

#[test]
fn an_origin_is_listed_with_its_scheme_host_and_port() {
    let list = "https://app.example.com, http://localhost:*,https://[::1]:8443";
    for listed in
        ["https://app.example.com", "http://localhost", "http://localhost:6274", "https://[::1]:8443"]
    {
        assert!(has_origin(list, listed), "{listed}");
    }
    for other in [
        "http://app.example.com",
        "https://app.example.com:444",
        "https://app.example.com.evil.example",
        "https://localhost:1",
        "https://[::1]",
        "null",
        "",
    ] {
        assert!(!has_origin(list, other), "{other}");
    }
    assert!(!has_origin("", "https://app.example.com"));
}
