//! The panel in a real browser: each `tests/peers/browser/*.test.mjs`, with the real service, a real host and a real agent.
//!
//! The browser's script gets the [world](Stage::world) in a variable. What only the machine can do it asks for by a line
//! `@stage …` on its standard output, and hears of on its standard input.

mod served;

use std::{fs, mem, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{
    agents::running::House,
    harness::{
        Address, Crew, Machine, Program, Serving, Tenant,
        fakes::telegram::{self, Shared, TOKEN, refusal, said},
        mailbox::mails_in,
        peer_folder,
    },
    people::oidc::Provider,
};

const ROLES: [&str; 4] = ["OWNER", "ADMIN", "OPERATOR", "VIEWER"];
const PASSWORD: &str = "correct horse battery";

/// The service with people in it, a server with a running agent, and a conversation.
struct Stage {
    house: House,
    crew: Crew,
    conversation: i64,
    /// Where the second replica is, whenever it runs.
    elsewhere: Address,
    replica: Option<Serving>,
    vendors: Option<Vendors>,
    entrance: Option<Entrance>,
    /// The machines of people who try Muster.
    machines: Vec<Machine>,
}

impl Stage {
    async fn set(name: &str) -> Self {
        let mut house = House::furnished("panel", enter).await;
        let vendors = if name == "channels" { Some(Vendors::meet(&mut house).await) } else { None };
        let entrance = if name == "sign_in" { Some(Entrance::open(&mut house).await) } else { None };
        let crew = house.crew("harbour").await;
        house.starts(&crew).await;
        let conversation = house.says(&crew, "How are the beans today?").await;
        house.hears(&crew, conversation, "beans").await;
        house.rests(conversation).await;
        let (elsewhere, machines) = (Address::free(), Vec::new());
        Self { house, crew, conversation, elsewhere, replica: None, vendors, entrance, machines }
    }

    fn world(&self) -> Value {
        let people: serde_json::Map<String, Value> = ROLES
            .iter()
            .map(|role| {
                let (email, name) = person(role);
                ((*role).to_owned(), json!({ "email": email, "name": name, "password": PASSWORD }))
            })
            .collect();
        json!({
            "base": self.house.actor.base(), "org": self.house.tenant.org, "token": self.house.tenant.token,
            "agent": self.crew.agent, "conversation": self.conversation, "people": people, "bot": TOKEN,
            "provider": self.provider().map(|provider| &provider.issuer),
        })
    }

    /// Where people have accounts that they come in with, or give to a channel.
    fn provider(&self) -> Option<&Provider> {
        let entrance = self.entrance.as_ref().map(|entrance| &entrance.provider);
        entrance.or(self.vendors.as_ref().map(|vendors| &vendors.google))
    }

    /// Does what the script asks for.
    fn does(&mut self, what: &str) -> Value {
        let words: Vec<&str> = what.split_whitespace().collect();
        match words.as_slice() {
            ["kill"] => self.house.falls(),
            ["serve"] => self.house.rises(),
            ["kill", "replica"] => self.replica = None,
            ["kill", "agent"] => self.crew.machine.kill_one("agent"),
            ["kill", "host"] => self.crew.machine.kill(),
            ["host"] => self.crew.machine.run(),
            ["replica"] => {
                let replica = self.house.program.serve_at(self.elsewhere.as_str());
                let base = replica.base.clone();
                self.replica = Some(replica);
                return json!({ "base": base });
            }
            ["seed", numbers @ ..] => {
                let org = self.house.tenant.org.to_string();
                return self.house.program.json(&[&["seed", "--org", &org], numbers].concat());
            }
            ["telegram", what @ ..] => {
                return self.vendors.as_mut().expect("the script has vendors").does(what);
            }
            ["muster", arguments @ ..] => return self.house.program.json(arguments),
            ["types", line @ ..] => {
                let mut machine = Machine::new();
                machine.types(&line.join(" "));
                self.machines.push(machine);
                return json!({ "machine": self.machines.len() - 1 });
            }
            ["said", machine] => return json!({ "said": self.machine(machine).said() }),
            ["interrupt", machine] => self.machine(machine).interrupts(),
            ["processes", machine] => return json!({ "count": self.machine(machine).processes().len() }),
            ["mail"] => return self.entrance.as_ref().expect("the script has mail").taken(),
            _ => return json!({ "error": format!("unknown order: {what}") }),
        }
        json!({})
    }

    fn machine(&self, number: &str) -> &Machine {
        &self.machines[number.parse::<usize>().unwrap()]
    }
}

/// Starts the service of a house again, with more settings. Its program from before has the house's keys.
fn resettle(house: &mut House, settings: &[(&str, &str)]) -> Program {
    house.falls();
    let base = house.actor.base().to_owned();
    let kept = |name| (name, house.program.variable(name));
    let kept = [
        kept("MUSTER_DATA_DIR"),
        kept("MUSTER_DATABASE_URL"),
        ("MUSTER_LISTEN", base.trim_start_matches("http://")),
    ];
    let program = Program::new(&[&kept[..], settings].concat());
    let before = mem::replace(&mut house.program, program);
    house.rises();
    before
}

/// The ways in besides a password: links in mails, and accounts at a provider.
struct Entrance {
    folder: TempDir,
    provider: Provider,
    /// Has the folder with the house's keys.
    _before: Program,
}

impl Entrance {
    /// The provider is on this machine as well, by a name that browsers take for another site's.
    async fn open(house: &mut House) -> Self {
        let base = house.actor.base().to_owned();
        let (email, name) = person("OPERATOR");
        let (other, _) = person("VIEWER");
        let options = json!({
            "host": "localhost",
            "redirect": format!("{base}/auth/oidc/peer/callback"),
            "inIdToken": true,
            "accounts": {
                "otto": { "email": email, "email_verified": true, "name": name },
                "eve": { "email": other, "email_verified": false, "name": "Eve" },
            },
        });
        let (provider, folder) = (Provider::start(&options).await, tempfile::tempdir().unwrap());
        let file = folder.path().join("oidc.toml");
        fs::write(&file, provider.settings(false)).unwrap();
        let mail = format!("file://{}", folder.path().join("mail").display());
        let before = resettle(
            house,
            &[
                ("MUSTER_PUBLIC_URL", &base),
                ("MUSTER_OIDC_FILE", file.to_str().unwrap()),
                ("MUSTER_MAIL_URL", &mail),
                ("MUSTER_MAIL_FROM", "Muster <muster@example.com>"),
            ],
        );
        Self { folder, provider, _before: before }
    }

    /// The mails that were sent since the last time.
    fn taken(&self) -> Value {
        let mails = mails_in(&self.folder.path().join("mail")).into_iter();
        let mails: Vec<_> =
            mails.map(|mail| json!({ "to": mail.to, "subject": mail.subject, "text": mail.text })).collect();
        json!({ "mails": mails })
    }
}

/// The vendors of channels, whom this process plays.
struct Vendors {
    telegram: Shared,
    google: Provider,
    /// How many updates there were.
    updates: i64,
    /// Has the folder with the house's keys.
    _before: Program,
}

impl Vendors {
    /// The service finds them from now on, and sends to this machine.
    async fn meet(house: &mut House) -> Self {
        let (address, telegram) = telegram::telegram().await;
        let url = format!("http://{address}/");
        let options = json!({
            "host": "localhost", "asGoogle": true, "inIdToken": true,
            "redirect": format!("{}/oauth/channel", house.actor.base()),
            "accounts": { "tides": { "email": "tides@example.org", "email_verified": true, "name": "Tides" } },
        });
        let google = Provider::start(&options).await;
        let at_google = format!("{}/", google.issuer);
        let settings = [
            ("MUSTER_CHANNELS_TELEGRAM_URL", url.as_str()),
            ("MUSTER_CHANNELS_NETWORKS", "127.0.0.0/8"),
            ("MUSTER_CHANNELS_GOOGLE_CLIENT_ID", "muster"),
            ("MUSTER_CHANNELS_GOOGLE_CLIENT_SECRET", "the client secret"),
            ("MUSTER_CHANNELS_GOOGLE_ACCOUNTS_URL", at_google.as_str()),
            ("MUSTER_CHANNELS_GOOGLE_TOKENS_URL", at_google.as_str()),
            ("MUSTER_CHANNELS_GOOGLE_API_URL", at_google.as_str()),
        ];
        let before = resettle(house, &settings);
        Self { telegram, google, updates: 0, _before: before }
    }

    /// Does what the script asks of Telegram, where user 5 is alone with the bot.
    fn does(&mut self, what: &[&str]) -> Value {
        self.updates += 1;
        let mut telegram = self.telegram.lock().unwrap();
        match what {
            ["says", words @ ..] => telegram.updates.push(said(self.updates, &words.join(" "))),
            // The button with this label, of the last message that has it.
            ["taps", label @ ..] => {
                let mut asked = telegram.asked.iter().rev().filter(|(method, _)| method == "sendMessage");
                let Some(value) = asked.find_map(|(_, asked)| button(asked, &label.join(" "))) else {
                    return json!({ "tapped": false });
                };
                let person = json!({ "id": 5, "is_bot": false, "first_name": "Ada" });
                let chat = json!({ "id": 5, "type": "private", "first_name": "Ada" });
                let message = json!({ "message_id": 42, "date": 1_700_000_000, "chat": chat });
                let tap = json!({ "id": "tap", "chat_instance": "1", "data": value, "from": person, "message": message });
                telegram.updates.push(json!({ "update_id": self.updates, "callback_query": tap }));
                return json!({ "tapped": true });
            }
            ["garbles"] => telegram.updates.push(json!({ "update_id": self.updates, "message": 5 })),
            ["breaks"] => telegram.answers.extend(vec![refusal(502, "Bad Gateway"); 1_000]),
            ["mends"] => telegram.answers.clear(),
            _ => return json!({ "error": format!("Telegram does not know how to {what:?}") }),
        }
        json!({})
    }
}

/// The value that a message's button with this label sends.
fn button(message: &Value, label: &str) -> Option<Value> {
    let rows = message["reply_markup"]["inline_keyboard"].as_array()?;
    let mut buttons = rows.iter().filter_map(Value::as_array).flatten();
    buttons.find(|button| button["text"] == label).map(|button| button["callback_data"].clone())
}

/// The people come in.
fn enter(program: &Program, tenant: &Tenant) {
    let org = tenant.org.to_string();
    for role in ROLES {
        let (email, name) = person(role);
        let create = ["user", "create", "--email", &email, "--name", name, "--confirmed", "--password-stdin"];
        program.json_told(&create, PASSWORD);
        program.json(&["member", "add", "--org", &org, "--email", &email, "--role", role]);
    }
}

fn person(role: &str) -> (String, &'static str) {
    let name = match role {
        "OWNER" => "Olive Owner",
        "ADMIN" => "Ada Admin",
        "OPERATOR" => "Otto Operator",
        _ => "Vera Viewer",
    };
    (format!("{}@example.org", role.to_lowercase()), name)
}

/// Runs a script, and fails with its output.
async fn play(name: &str) {
    let mut stage = Stage::set(name).await;
    let mut node = Command::new("node");
    node.args(["--test-reporter", "spec", &format!("{name}.test.mjs")]).current_dir(peer_folder("browser"));
    node.env("MUSTER_WORLD", stage.world().to_string()).kill_on_drop(true);
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut tells, hears) = (node.stdin.take().unwrap(), node.stdout.take().unwrap());
    let mut lines = BufReader::new(hears).lines();
    let mut said = String::new();
    let whole = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            let Some(what) = line.strip_prefix("@stage ") else {
                said += &line;
                said.push('\n');
                continue;
            };
            let answer = format!("{}\n", tokio::task::block_in_place(|| stage.does(what)));
            tells.write_all(answer.as_bytes()).await.unwrap();
        }
        node.wait().await.unwrap()
    };
    let status = timeout(Duration::from_mins(8), whole).await;
    assert!(status.is_ok_and(|status| status.success()), "{said}");
}

macro_rules! plays {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let name = stringify!($name);
            play(name.split_once('_').unwrap().1).await;
        })*
    };
}

plays![
    sqlite_agents,
    sqlite_audit,
    sqlite_channels,
    sqlite_conversations,
    sqlite_docs,
    sqlite_erased,
    sqlite_events,
    sqlite_every_layer_of_records,
    sqlite_every_layer_of_work,
    sqlite_every_long_list,
    sqlite_every_long_thread,
    sqlite_every_page_broken,
    sqlite_every_page_by_tab,
    sqlite_every_page_empty,
    sqlite_every_page_hostile,
    sqlite_every_page_in_forced_colours,
    sqlite_every_page_narrow,
    sqlite_every_page_seen_by_viewer,
    sqlite_faults,
    sqlite_figures,
    sqlite_first_run,
    sqlite_first_start,
    sqlite_hostile,
    sqlite_inbox,
    sqlite_invited,
    sqlite_kept,
    sqlite_keyboard,
    sqlite_lighthouse,
    sqlite_pages_seen_by_owner,
    sqlite_palette,
    sqlite_people,
    sqlite_phone,
    sqlite_policies,
    sqlite_records,
    postgres_replicas,
    sqlite_roles,
    sqlite_servers,
    sqlite_sign_in,
    sqlite_spending,
    sqlite_two_browsers,
];

#[test]
fn once_every_script_of_the_browser_is_run() {
    let files = fs::read_dir(peer_folder("browser"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut scripts: Vec<_> =
        files.filter_map(|name| Some(name.strip_suffix(".test.mjs")?.to_owned())).collect();
    let mut run: Vec<_> = NAMES.iter().map(|name| name.split_once('_').unwrap().1.to_owned()).collect();
    scripts.sort();
    run.sort();
    assert_eq!(scripts, run);
}
