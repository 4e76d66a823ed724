//! The settings on the command line: the commented defaults, what is in force, mistakes with their places, and
//! `serve --listen`. With the real program.

use std::fs;

use muster::core::config::{DEFAULT, SETTINGS};
use serde_json::json;

use crate::harness::{Program, muster};

#[tokio::test]
async fn once_the_printed_defaults_are_a_valid_settings_file() {
    let none: [(&str, &str); 0] = [];
    assert_eq!(muster(&["config", "defaults"], &none).await.expect()["defaults"], DEFAULT);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("muster.toml");
    let program = Program::new(&[("MUSTER_CONFIG", file.to_str().unwrap())]);
    fs::write(&file, "").unwrap();
    fs::write(&file, program.run(&["config", "defaults"]).text).unwrap();
    program.json(&["config", "check"]);
}

#[tokio::test]
async fn once_config_show_names_origins_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("muster.toml"), folder.path().join("secret"));
    fs::write(&file, "[log]\nfilter = \"warn\"\n").unwrap();
    fs::write(&secret, "postgres://app:hunter2hunter2@db.example.com/muster\n").unwrap();
    let given = [
        ("MUSTER_CONFIG", file.to_str().unwrap()),
        ("MUSTER_DATABASE_URL_FILE", secret.to_str().unwrap()),
        ("MUSTER_LISTEN", "127.0.0.1:0"),
    ];
    let ran = muster(&["config", "show"], &given).await;
    assert!(!ran.text.contains("hunter2"), "{}", ran.text);
    let shown = ran.expect();
    let settings = shown["settings"].as_array().unwrap();
    let found = |key: &str| {
        let setting = settings.iter().find(|setting| setting["key"] == key).unwrap();
        let text = |name: &str| setting[name].as_str().unwrap_or_default().to_owned();
        [text("value"), text("from"), text("place")]
    };
    assert_eq!(found("log.filter"), ["warn", "file", &format!("{}:2", file.display())]);
    assert_eq!(found("listen"), ["127.0.0.1:0", "variable", "MUSTER_LISTEN"]);
    assert_eq!(found("data_dir"), ["./data", "default", ""]);
    let place = format!("MUSTER_DATABASE_URL_FILE ({})", secret.display());
    assert_eq!(found("database.url"), ["postgres://***@db.example.com/muster", "variable", &place]);
    // For people, a line each.
    let program = Program::new(&given);
    let lines = program.run(&["config", "show"]).text;
    for setting in SETTINGS.iter().filter(|setting| setting.secret().is_none()) {
        assert!(lines.lines().any(|line| line.starts_with(setting.key)), "{}: {lines}", setting.key);
    }
}

#[tokio::test]
async fn once_config_check_gives_each_mistake_its_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("muster.toml");
    fs::write(&file, "lisen = \"127.0.0.1:1\"\n[limits]\ngraphql_depth = \"deep\"\n").unwrap();
    let given = [("MUSTER_CONFIG", file.to_str().unwrap()), ("MUSTER_MAIL_URL_FILE", "/nowhere/mail")];
    let checked = muster(&["config", "check"], &given).await;
    assert_eq!((checked.code, &checked.out["ok"]), (Some(1), &json!(false)), "{:#}", checked.out);
    let findings = checked.out["findings"].as_array().unwrap();
    let found: Vec<_> = findings.iter().map(|finding| finding["found"].as_str().unwrap()).collect();
    let (file, mail) = (file.display(), "MUSTER_MAIL_URL_FILE: the file is out of reach: No such file");
    let expected = [
        format!("{file}:1: unknown setting lisen (did you mean listen?)"),
        format!("{file}:3: limits.graphql_depth must be a whole number from 3 to 100"),
    ];
    for mistake in &expected {
        assert!(found.contains(&mistake.as_str()), "{found:#?}");
    }
    assert!(found.len() == 3 && found.iter().any(|found| found.starts_with(mail)), "{found:#?}");
    assert!(findings.iter().all(|finding| finding["advice"].as_str().is_some()), "{findings:#?}");
    // `serve` says the same.
    let refused = muster(&["serve"], &given).await.refused(1, "VALIDATION_FAILED");
    assert!(found.iter().all(|found| refused.contains(found)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_serve_listens_where_its_argument_says() {
    // An address of no machine.
    let program = Program::new(&[("MUSTER_LISTEN", "192.0.2.1:80"), ("MUSTER_LOG", "off")]);
    let mut serving = program.serve_with(&["--listen", "127.0.0.1:0"]);
    assert!(serving.address().starts_with("127.0.0.1:"), "{}", serving.address());
    let other = Program::new(&[]);
    let said = other.run(&["serve", "--listen", serving.address(), "--json"]).refused(1, "FAILED");
    assert!(said.contains("Choose another address: muster serve --listen 127.0.0.1:"), "{said}");
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn once_serve_warns_of_passwords_in_clear() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for (more, warns) in [
        (&[("MUSTER_LISTEN", "0.0.0.0:0")][..], true),
        (&[("MUSTER_LISTEN", "0.0.0.0:0"), ("MUSTER_TRUSTED_PROXIES", "10.0.0.7")], false),
        (&[("MUSTER_LISTEN", "127.0.0.1:0")], false),
    ] {
        let program = Program::new(more);
        let mut serving = program.serve_logging_to(fs::File::create(&log).unwrap());
        serving.terminate();
        assert_eq!(serving.ended().await, Some(0));
        let text = fs::read_to_string(&log).unwrap();
        assert_eq!(text.contains("serve.in_clear"), warns, "{more:?}: {text}");
        assert!(text.contains("mail.off"), "{text}");
        let found = program.json(&["config", "check"]);
        let tls = found["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "TLS");
        assert_eq!(tls.is_some_and(|finding| finding["level"] == "warning"), warns, "{found:#}");
    }
}
