//! `muster user` and `muster org list`: how the operator sees and manages accounts.

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{
    Actor, Program, Socket, TestApp,
    account::{CHANGE_EMAIL, CONFIRM, RESET},
    empty_database, until,
};

const REFRESH: &str = "mutation($t: SecretString!) { refreshSession(refreshToken: $t) { accessToken } }";
const VIEWER: &str = "{ viewer { user { id } } }";
const SOMEONE: &str = "someone@example.org";

/// How often this operation appears in the instance's log.
async fn lines(app: &TestApp, operation: &str) -> i64 {
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = $1 AND organization_id IS NULL \
               AND actor_kind = 'SYSTEM'";
    app.one(sql, vec![operation.into()]).await
}

/// Keeps sessions valid until a command sees them: commands use the real time, not the test's.
async fn last(app: &TestApp) {
    app.execute("UPDATE sessions SET expires_at = 4102444800000", vec![]).await;
}

#[tokio::test]
async fn the_operator_sees_organizations_and_their_members() {
    let app = TestApp::start().await;
    app.agent().await;
    let someone = app.user(SOMEONE, false).await;
    let (seen, _) = app.signed_in(SOMEONE).await;
    last(&app).await;
    app.execute("UPDATE users SET name = $1 WHERE id = $2", vec!["\u{1b}[2J".into(), someone.into()]).await;
    let listed = app.cli(&["org", "list"]).await.expect()["organizations"].clone();
    let counts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|org| {
            [&org["id"], &org["members"], &org["owners"], &org["agents"]].map(|it| it.as_i64().unwrap())
        })
        .collect();
    assert_eq!(counts, [[app.org, 4, 1, 1], [app.other_org, 1, 1, 0]]);
    let first = &listed[0];
    assert_eq!((&first["name"], &first["plan"]), (&json!("Meridian Freight"), &json!("BUSINESS")));
    assert_eq!(first["created_at"], "2026-06-01T12:00:00.000Z");

    let users = app.cli(&["user", "list"]).await.expect()["users"].as_array().unwrap().clone();
    let ids: Vec<i64> = users.iter().map(|user| user["id"].as_i64().unwrap()).collect();
    assert!(ids.len() == 6 && ids.is_sorted() && ids.contains(&someone), "{ids:?}");
    let last = users.iter().find(|user| user["id"] == someone).unwrap();
    let shown = [&last["email_confirmed"], &last["has_password"], &last["has_second_factor"]];
    assert_eq!(shown, [&json!(false), &json!(true), &json!(false)]);
    assert_eq!((&last["memberships"], &last["disabled_at"]), (&json!([]), &Value::Null));
    let of_org = app.cli(&["user", "list", "--org", "Meridian Freight"]).await;
    assert!(
        !of_org.text.contains("stranger@example.com") && !of_org.text.contains("hash"),
        "{}",
        of_org.text
    );
    let members = of_org.expect()["users"].as_array().unwrap().clone();
    let roles: Vec<_> = members.iter().map(|user| user["memberships"][0]["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["OWNER", "ADMIN", "OPERATOR", "VIEWER"]);
    assert!(members.iter().all(|user| user["memberships"][0]["organization_id"] == app.org));

    // By address, regardless of case, and by id.
    let shown = app.cli(&["user", "show", " SOMEONE@example.org"]).await.expect();
    assert_eq!(shown, app.cli(&["user", "show", &someone.to_string()]).await.expect());
    assert_eq!((shown["sessions"].as_array().unwrap().len(), &shown["recovery_codes"]), (1, &json!(0)));
    assert_eq!((&shown["linked_accounts"], &shown["service_tokens"]), (&json!([]), &json!([])));
    assert!(shown["sessions"][0].get("current").is_none());
    seen.gql(VIEWER, json!({})).await.data();

    // For people: nothing that a terminal would interpret.
    for arguments in [&["user", "list"][..], &["user", "show", SOMEONE], &["org", "list"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        let text = command.args(arguments).env_clear().envs(app.variables()).output().unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.lines().count() > 2 && !text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn unknown_users_are_named_in_the_error() {
    let app = TestApp::start().await;
    for verb in ["show", "disable", "enable", "reset-password", "reset-second-factor"] {
        for who in ["unknown@example.org", "999999", "Ann", ""] {
            let said = app.refuses(&["user", verb, who], 1, "NOT_FOUND").await;
            assert!(said.contains(&format!("`{who}`")) && said.contains("muster user list"), "{said}");
        }
        app.refuses(&["user", verb], 2, "USAGE").await;
    }
    app.refuses(&["user", "list", "--org", "Nowhere"], 1, "NOT_FOUND").await;
}

/// Waits until the service no longer knows the caller.
async fn refused(actor: &Actor) {
    until("the session has ended", async || {
        let answer = actor.gql(VIEWER, json!({})).await;
        let is_refused = !answer.body["errors"].is_null();
        assert!(!is_refused || answer.code() == "UNAUTHENTICATED", "{}", answer.text);
        is_refused
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_service_refuses_disabled_users() {
    let shared = tempfile::tempdir().unwrap();
    let url = empty_database(shared.path()).await;
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    program.json(&["org", "create", "--name", "Other", "--owner-email", "stranger@example.org"]);
    let create = ["user", "create", "--email", SOMEONE, "--name", "S", "--password-stdin", "--confirmed"];
    program.json_told(&create, "correct horse\n");
    program.json(&["member", "add", "--org", "House", "--email", SOMEONE, "--role", "VIEWER"]);
    let service = program.serve();
    let open = |email| {
        let session = program.json(&["session", "create", "--email", email]);
        let text = |key: &str| session[key].as_str().unwrap().to_owned();
        (service.actor(&tenant).with_bearer(text("access_token")), text("refresh_token"))
    };
    let ((someone, refresh), (stranger, _)) = (open(SOMEONE), open("stranger@example.org"));
    let anyone = service.actor(&tenant);
    let mut socket = Socket::of(&someone).await;
    let mut other = Socket::of(&stranger).await;
    someone.gql(VIEWER, json!({})).await.data();

    let done = program.json(&["user", "disable", SOMEONE]);
    assert_eq!((&done["changed"], &done["sessions_ended"]), (&json!(true), &json!(1)));
    refused(&someone).await;
    assert_eq!(socket.next().await, json!({ "closed": 4403 }));
    assert_eq!(anyone.gql(REFRESH, json!({ "t": refresh })).await.code(), "UNAUTHENTICATED");
    let sign_in =
        "mutation($e: String!, $p: SecretString!) { signIn(email: $e, password: $p) { accessToken } }";
    let credentials = json!({ "e": SOMEONE, "p": "correct horse" });
    assert_eq!(anyone.gql(sign_in, credentials.clone()).await.code(), "SIGN_IN_FAILED");
    // No one else is affected.
    stranger.gql(VIEWER, json!({})).await.data();
    other.send(json!({ "type": "ping" })).await;
    assert_eq!(other.next().await["type"], "pong");

    assert_eq!(program.json(&["user", "enable", SOMEONE])["changed"], true);
    assert_eq!(someone.gql(VIEWER, json!({})).await.code(), "UNAUTHENTICATED", "ended sessions stay ended");
    assert!(anyone.gql(sign_in, credentials).await.data()["signIn"]["accessToken"].is_string());
}

#[tokio::test]
async fn disabling_reports_what_remains_and_ends_every_way_in() {
    let app = TestApp::with_mail().await;
    let (owner, id) = ("owner@example.com", app.owner.user.unwrap());
    let make = "mutation($o: Id!) { createServiceToken(orgId: $o, input: { name: \"ci\", permissions: [\"agent.view\"] }) \
                { __typename } }";
    app.owner.gql(make, json!({ "o": app.org })).await.data();
    let tokens: Vec<i64> = app.column("SELECT id FROM service_tokens").await;
    // A way back in prepared by anyone who has the session: a link that would change the account's address.
    app.owner.gql(CHANGE_EMAIL, json!({ "e": "elsewhere@example.org" })).await.data();
    let link = app.mail().await.token;
    let before = lines(&app, "disableUser").await;
    let done = app.cli(&["user", "disable", owner]).await.expect();
    assert_eq!((&done["id"], &done["email"], &done["changed"]), (&json!(id), &json!(owner), &json!(true)));
    let without = json!([{ "id": app.org, "name": "Meridian Freight" }]);
    assert_eq!(done["organizations_without_owner"], without, "it was the last OWNER, and the result says so");
    assert_eq!(
        done["service_tokens"],
        json!([{ "organization_id": app.org, "id": tokens[0], "name": "ci" }])
    );
    // Disabling again changes nothing and still reports what remains.
    let again = app.cli(&["user", "disable", &id.to_string()]).await.expect();
    assert_eq!((&again["changed"], &again["disabled_at"]), (&json!(false), &done["disabled_at"]));
    assert_eq!(again["organizations_without_owner"], without);
    assert_eq!(lines(&app, "disableUser").await - before, 1);
    let orgs = app.cli(&["org", "list"]).await.expect();
    assert_eq!(
        (&orgs["organizations"][0]["members"], &orgs["organizations"][0]["owners"]),
        (&json!(4), &json!(0))
    );

    app.forget_sessions();
    let path = format!("/v1/org/{}", app.org);
    assert_eq!(app.owner.get(&path).await.status, 401);
    assert_eq!(app.anonymous.gql(CONFIRM, json!({ "t": link })).await.code(), "LINK_INVALID");
    assert_eq!(app.cli(&["user", "enable", owner]).await.expect()["changed"], true);
    assert_eq!(app.cli(&["user", "enable", owner]).await.expect()["changed"], false);
    assert_eq!(lines(&app, "enableUser").await, 1);
    assert_eq!(app.anonymous.gql(CONFIRM, json!({ "t": link })).await.code(), "LINK_INVALID");
    app.forget_sessions();
    assert_eq!(app.owner.get(&path).await.status, 401, "sessions from before stay ended");

    // A link created just before the service knew doesn't work for a disabled account either.
    app.user(SOMEONE, false).await;
    let (someone, _) = app.signed_in(SOMEONE).await;
    someone.gql(CHANGE_EMAIL, json!({ "e": "elsewhere@example.org", "p": "correct horse" })).await.data();
    let late = app.mail().await.token;
    app.execute("UPDATE users SET disabled_at = 1 WHERE email = $1", vec![SOMEONE.into()]).await;
    assert_eq!(app.anonymous.gql(CONFIRM, json!({ "t": late })).await.code(), "LINK_INVALID");
    app.cli(&["user", "enable", SOMEONE]).await.expect();
    assert_eq!(app.anonymous.gql(CONFIRM, json!({ "t": late })).await.code(), "LINK_INVALID");
}

#[tokio::test]
async fn a_disabled_owner_does_not_count_as_the_last_owner() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    let update = |email, role| ["member", "update", "--org", &org, "--email", email, "--role", role];
    let made = app.cli(&update("admin@example.com", "OWNER")).await.expect();
    assert_eq!(made, json!({ "organization_id": app.org, "user_id": app.admin.user, "role": "OWNER" }));
    let done = app.cli(&["user", "disable", "admin@example.com"]).await.expect();
    assert_eq!(done["organizations_without_owner"], json!([]));
    app.forget_sessions();
    let leave = "mutation($o: Id!) { leaveOrganization(orgId: $o) }";
    assert_eq!(app.owner.gql(leave, json!({ "o": app.org })).await.code(), "LAST_OWNER");
    let said = app.refuses(&update("owner@example.com", "VIEWER"), 1, "LAST_OWNER").await;
    assert!(said.contains("who can sign in"), "{said}");
    let remove = |email| ["member", "remove", "--org", &org, "--email", email];
    app.refuses(&remove("owner@example.com"), 1, "LAST_OWNER").await;
    app.refuses(&remove("stranger@example.com"), 1, "NOT_FOUND").await;
    assert_eq!(app.cli(&remove("admin@example.com")).await.expect()["removed"], true);
    assert_eq!(
        app.cli(&["user", "list", "--org", &org]).await.expect()["users"].as_array().unwrap().len(),
        3
    );
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE organization_id = $1 AND actor_kind = 'SYSTEM' \
               AND operation IN ('updateMember', 'removeMember')";
    assert_eq!(app.one::<i64>(sql, vec![app.org.into()]).await, 2);
}

#[tokio::test]
async fn the_operator_can_hand_over_a_password_link() {
    let app = TestApp::start().await;
    app.user(SOMEONE, true).await;
    let (someone, _) = app.signed_in(SOMEONE).await;
    last(&app).await;
    let reset = ["user", "reset-password", SOMEONE];
    let first = app.cli(&reset).await.expect();
    assert_eq!((&first["sessions_ended"], &first["told_by_mail"]), (&json!(1), &json!(false)));
    let link = first["link"].as_str().unwrap();
    let token = first["token"].as_str().unwrap().to_owned();
    assert!(
        link.starts_with("http://127.0.0.1") && link.ends_with(&format!("/reset-password#token={token}"))
    );
    app.forget_sessions();
    assert_eq!(someone.gql(VIEWER, json!({})).await.code(), "UNAUTHENTICATED");
    assert_eq!(app.sign_in(SOMEONE, "correct horse").await.code(), "SIGN_IN_FAILED", "at once");
    // A newer link replaces it. While the account is disabled neither works, and trying doesn't use them up.
    app.cli(&["user", "disable", SOMEONE]).await.expect();
    let second = app.cli(&reset).await.expect();
    assert_eq!(second["disabled"], true);
    let set = |token: &Value| json!({ "t": token, "p": "another horse" });
    for token in [&first["token"], &second["token"]] {
        assert_eq!(app.anonymous.gql(RESET, set(token)).await.code(), "LINK_INVALID");
    }
    app.cli(&["user", "enable", SOMEONE]).await.expect();
    assert_eq!(app.anonymous.gql(RESET, set(&first["token"])).await.code(), "LINK_INVALID");
    app.anonymous.gql(RESET, set(&second["token"])).await.data();
    assert_eq!(app.sign_in(SOMEONE, "correct horse").await.code(), "SIGN_IN_FAILED");
    assert!(app.sign_in(SOMEONE, "another horse").await.data()["signIn"]["accessToken"].is_string());
    assert_eq!(lines(&app, "resetUserPassword").await, 2);
    let logged: Vec<String> = app.column("SELECT CAST(changes AS TEXT) FROM audit_lines").await;
    assert!(logged.iter().all(|line| !line.contains(&token)), "no link is in the log");
}

#[tokio::test]
async fn passwords_never_appear_on_a_command_line() {
    let app = TestApp::start().await;
    let create = ["user", "create", "--email", SOMEONE, "--name", "S"];
    let from_input = [&create[..], &["--password-stdin"]].concat();
    let said = app.refuses(&create, 1, "VALIDATION_FAILED").await;
    assert!(said.contains("no terminal") && said.contains("--password-stdin"), "{said}");
    app.refuses(&[&create[..], &["--password", "correct horse"]].concat(), 2, "USAGE").await;
    for (input, words) in [("", "empty"), ("\n", "empty"), ("correct\nhorse\n", "one line")] {
        let said = app.cli_with_input(&from_input, input).await.refused(1, "VALIDATION_FAILED");
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM users WHERE email = $1", vec![SOMEONE.into()]).await, 0);

    // A terminal asks for it twice, without echo.
    let mut typed = Terminal::run(&app, &create);
    typed.answer("Password: ", "correct horse\n");
    typed.answer("Repeat the password: ", "wrong horse\n");
    let (code, shown) = typed.end();
    assert!(
        code == Some(1) && shown.contains("the two passwords differ") && !shown.contains("horse"),
        "{shown}"
    );
    let mut typed = Terminal::run(&app, &create);
    typed.answer("Password: ", "correct horse\n");
    typed.answer("Repeat the password: ", "correct horse\n");
    let (code, shown) = typed.end();
    assert!(code == Some(0) && shown.contains(SOMEONE) && !shown.contains("horse"), "{shown}");
    app.sign_in(SOMEONE, "correct horse").await.data();
}

#[tokio::test]
async fn a_hosts_token_is_typed_without_being_shown() {
    let (app, folder) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let dir = folder.path().join("h").display().to_string();
    let join = ["host", "join", "--url", "http://127.0.0.1:1", "--token-stdin", "--dir", &dir];
    let mut typed = Terminal::run(&app, &join);
    typed.answer("and press Enter: ", "mst_svc_4711\n");
    let (code, shown) = typed.end();
    assert!(code == Some(1) && shown.contains("not a provisioning token"), "{shown}");
    assert!(!shown.contains("4711"), "{shown}");
}

/// `muster` on its own terminal (util-linux's `script`).
struct Terminal {
    child: std::process::Child,
    shown: String,
}

impl Terminal {
    fn run(app: &TestApp, arguments: &[&str]) -> Self {
        let line = format!("'{}' {}", env!("CARGO_BIN_EXE_muster"), arguments.join(" "));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH")).envs(app.variables());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self { child: child.expect("script is installed (util-linux)"), shown: String::new() }
    }

    /// Types after this prompt.
    fn answer(&mut self, question: &str, line: &str) {
        let mut byte = [0];
        while !self.shown.ends_with(question) {
            let read = self.child.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert!(read == 1, "it does not ask `{question}`: {}", self.shown);
            self.shown.push(char::from(byte[0]));
        }
        // The prompt is written before the terminal's echo is turned off.
        self.silent();
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Waits until the terminal has stopped echoing.
    fn silent(&self) {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let terminal = format!("/proc/{}/fd/0", children.split_whitespace().next().expect("it runs"));
        for _ in 0..6_000 {
            let settings = Command::new("stty").args(["-a", "-F", &terminal]).output().unwrap().stdout;
            if String::from_utf8_lossy(&settings).contains(" -echo ") {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the terminal echoes what is typed");
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.child.stdout.as_mut().unwrap().read_to_string(&mut self.shown).unwrap();
        (self.child.wait().unwrap().code(), self.shown)
    }
}

#[tokio::test]
async fn an_account_can_be_disabled_while_the_policy_is_broken() {
    let shared = tempfile::tempdir().unwrap();
    let url = empty_database(shared.path()).await;
    let keys = shared.path().join("keys.toml");
    let base = [("MUSTER_DATABASE_URL", url.as_str()), ("MUSTER_KEYS_FILE", keys.to_str().unwrap())];
    let program = Program::new(&base);
    program.tenant();
    let folder = shared.path().join("policies");
    muster::cli::write_defaults(&folder).unwrap();
    fs::write(folder.join("policy.csv"), "p, OWNER, no such thing\n").unwrap();
    let broken = Program::new(&[&base[..], &[("MUSTER_POLICY_DIR", folder.to_str().unwrap())]].concat());
    let invite =
        ["member", "add", "--org", "House", "--email", "a@example.org", "--role", "VIEWER", "--json"];
    broken.run(&invite).refused(1, "FAILED");
    assert_eq!(broken.json(&["user", "list"])["users"].as_array().unwrap().len(), 1);
    let done = broken.json(&["user", "disable", "a@example.org"]);
    assert_eq!(done["organizations_without_owner"][0]["name"], "House");
    let text = broken.command(&["user", "disable", "a@example.org"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("WARNING: organization House") && text.contains("muster member add"), "{text}");
    // The stranger's organization isn't mentioned.
    broken.json(&["user", "enable", "a@example.org"]);
}
