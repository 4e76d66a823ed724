//! Runs the examples of `docs/api.md` and `docs/tools.md` as they stand there, against a service whose agent runs.

use futures::future::join_all;
use muster_testing::peers::output;
use sea_orm::ConnectionTrait;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    agents::{running::House, third_party::Everything},
    harness::{Address, Crew, PATIENCE, Scripts, connect, until},
};

const TEST: &str = "tests/it/api/manual.rs";
const TASK: &str = r#"do execute Deploy {"command":"make deploy"}"#;

/// Someone who has the examples of a page, a token, and an agent.
struct Integrator {
    scripts: Scripts,
    variables: [(&'static str, String); 4],
}

impl Integrator {
    fn with(page: &str, house: &House, crew: &Crew) -> Self {
        let variables = [
            ("MUSTER_URL", house.actor.base().to_owned()),
            ("MUSTER_TOKEN", house.tenant.token.clone()),
            ("ORG", house.tenant.org.to_string()),
            ("AGENT", crew.agent.to_string()),
        ];
        Self { scripts: Scripts::of_page(page, TEST), variables }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = self.scripts.command(name);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    async fn runs(&self, name: &str) -> String {
        output(self.command(name), "").await
    }
}

/// A program that does not end by itself.
struct Running {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut process = command.stderr(std::process::Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, lines }
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        line.unwrap().expect("it still runs")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_six_things_that_every_integration_does() {
    let (house, crew) = House::with_crew("integrated").await;
    let them = Integrator::with("docs/api.md", &house, &crew);
    let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { serverId } }";
    let server = house.gql(query, json!({ "a": crew.agent })).await["agent"]["serverId"].clone();
    let mut names = vec!["agent of integrated".to_owned()];
    for name in ["second", "third", "fourth"] {
        let agent = json!({ "name": name, "server_id": server, "image_id": null });
        house.actor.post(&format!("/v1/org/{}/agent", house.tenant.org), agent).await.expect(201);
        names.push(name.to_owned());
    }
    for language in ["sh", "py", "ts"] {
        // Two agents are a full page, so there are three pages.
        them.scripts.replace(&format!("page.{language}"), "200", "2");
    }
    them.scripts.compile().await;
    let database = connect(house.program.variable("MUSTER_DATABASE_URL")).await;

    for language in ["sh", "py", "ts"] {
        let listed = them.runs(&format!("list.{language}")).await;
        assert!(listed.contains(&format!("{} agent of integrated: RUNNING", crew.agent)), "{listed}");
        assert_eq!(listed.lines().count(), names.len(), "{listed}");

        let post = async || {
            let mut command = them.command(&format!("post.{language}"));
            command.env("TICKET", language);
            output(command, "").await
        };
        let answer = post().await;
        assert!(answer.starts_with("DONE\n") && answer.contains("Where is my order?"), "{answer}");
        assert_eq!(post().await, answer, "the same keys, the same message");
        if language != "sh" {
            // As if the service had died between each commit and its response.
            let lose = "UPDATE idempotency_keys SET status = NULL, answer_sealed = NULL, answer_bytes = NULL, claimed_at = 0";
            database.execute_unprepared(lose).await.unwrap();
            assert_eq!(post().await, answer, "the records that the lost answers were about");
        }

        let conversation = house.says(&crew, TASK).await;
        house.asked(&crew, conversation).await;
        let approved = them.runs(&format!("approve.{language}")).await;
        assert!(approved.starts_with("approved: Deploy"), "{approved}");
        assert_eq!(house.rests(conversation).await, ["DONE"]);

        let paged = them.runs(&format!("page.{language}")).await;
        assert_eq!(paged.lines().collect::<Vec<_>>(), names, "page.{language}");
    }
    let path = format!("/v1/org/{}/conversation?limit=50&offset=0", house.tenant.org);
    let conversations = house.actor.get(&path).await.expect(200)["data"].clone();
    let titles = conversations.as_array().unwrap().iter().filter_map(|one| one["title"].as_str());
    assert_eq!(titles.filter(|title| title.starts_with("Ticket ")).count(), 3, "one for each language");

    let skill = json!({ "name": "notes", "content": "# Notes" });
    let path = format!("/v1/org/{}/skill", house.tenant.org);
    let skill = house.actor.post(&path, skill).await.expect(201)["id"].to_string();
    let edits = (0..6).map(|n| {
        let mut command = them.command(["edit.py", "edit.ts"][n % 2]);
        command.env("SKILL", &skill).env("LINE", format!("line {n}"));
        output(command, "")
    });
    join_all(edits).await;
    let content = house.actor.get(&format!("{path}/{skill}")).await.expect(200)["content"].clone();
    let mut lines: Vec<&str> = content.as_str().unwrap().lines().skip(1).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["line 0", "line 1", "line 2", "line 3", "line 4", "line 5"], "no edit is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_subscription_tells_of_each_new_request() {
    let (house, crew) = House::with_crew("subscribed").await;
    let them = Integrator::with("docs/api.md", &house, &crew);
    let mut program = Running::start(them.command("react.sh"));
    assert_eq!(program.line().await, "pending: 0");
    house.says(&crew, TASK).await;
    let line = program.line().await;
    assert!(line.starts_with("asked: Deploy"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_an_event_arrives_and_leads_to_its_record() {
    // Receivers are on this machine, which endpoints may not call without the operator's permission.
    let house = House::open_with(&[("MUSTER_CHANNELS_NETWORKS", "127.0.0.0/8")]).await;
    let crew = house.crew("noticed").await;
    house.starts(&crew).await;
    let them = Integrator::with("docs/api.md", &house, &crew);
    them.scripts.compile().await;
    for name in ["react.py", "react.ts"] {
        let address = Address::free();
        let url = format!("http://{}", address.as_str());
        let create = "mutation($o: Id!, $i: CreateEventEndpointInput!) { \
                      createEventEndpoint(orgId: $o, input: $i) { id secret } }";
        let input = json!({ "name": name, "url": url, "types": ["approval.raised"] });
        let made = house.owner().gql(create, json!({ "o": house.tenant.org, "i": input })).await.data();
        let made = &made["createEventEndpoint"];
        let mut command = them.command(name);
        command.env("PORT", address.port().to_string()).env("SECRET", made["secret"].as_str().unwrap());
        let mut program = Running::start(command);
        until("it listens", async || TcpStream::connect(address.as_str()).await.is_ok()).await;
        let forged = house.actor.at(&url).post("/", json!({})).await;
        assert_eq!(forged.status, 401, "{name} accepts an unsigned event");
        house.says(&crew, TASK).await;
        assert_eq!(program.line().await, "asked: Deploy", "{name}");
        let delete = "mutation($o: Id!, $id: Id!) { deleteEventEndpoint(orgId: $o, id: $id) }";
        house.owner().gql(delete, json!({ "o": house.tenant.org, "id": made["id"] })).await.data();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_an_agent_gets_a_skill_tools_and_a_credential() {
    let (house, everything) = (House::open().await, Everything::start().await);
    let crew = house.crew("equipped").await;
    let them = Integrator::with("docs/tools.md", &house, &crew);
    let api = Scripts::of_page("docs/api.md", TEST);
    std::fs::copy(api.path().join("muster.sh"), them.scripts.path().join("muster.sh")).unwrap();
    for (name, made) in [("skill.sh", "tone"), ("mcp.sh", "tickets"), ("credential.sh", "Ticket system")] {
        let mut command = them.command(name);
        command.env("TICKETS", &everything.url).env("TICKETS_TOKEN", "canary-tickets-51");
        assert_eq!(output(command, "").await, format!("{made} is used by agent of equipped\n"));
    }
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Good morning").await;
    house.hears(&crew, conversation, "tone").await;
    house.adds(conversation, "tools").await;
    house.hears(&crew, conversation, "echo").await;
    assert_eq!(crew.machine.find("canary-tickets-51"), Vec::<String>::new(), "the agent holds no token");
}
