//! A small control plane: its state, and the tests' controls.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use muster_protocol::{
    Command, Event, HostEvent,
    command::CommandEnvelope,
    event::{Asked, Content, Message, Request, TurnEnd},
    frame::{Delta, Hello, Load, RefusedCode, Running},
    plan::{
        Action, ActionOutcome, Answer, Decision, Judgement, LaunchPlan, Part, PlanRequest, PlanResponse,
        TurnPlan,
    },
};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::connection;

/// Silence of a host after which a wait has failed. Agents in containers have a lower priority, and run slowly next to
/// other load.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// State of the control plane.
#[derive(Default)]
pub struct State {
    pub url: String,
    /// Valid provisioning tokens.
    pub tokens: BTreeSet<String>,
    /// The host's token, and its machine.
    pub host: Option<(String, String)>,
    pub orders: Vec<CommandEnvelope>,
    pub received: i64,
    pub events: Vec<Event>,
    /// Repeated events.
    pub repeated: usize,
    pub deltas: Vec<Delta>,
    pub loads: Vec<Load>,
    pub hellos: Vec<Hello>,
    pub plans: BTreeMap<i64, LaunchPlan>,
    pub asked_plans: usize,
    pub turns: BTreeMap<i64, TurnPlan>,
    pub answers: BTreeMap<i64, Answer>,
    /// By tool. Others are refused.
    pub judgements: BTreeMap<String, Judgement>,
    pub leases: Vec<PlanResponse>,
    /// The actions of all conversations.
    pub actions: Vec<Action>,
    /// The called actions: names and arguments.
    pub acted: Vec<(String, Value)>,
    /// The outcomes of the next ones. Others are done.
    pub outcomes: VecDeque<ActionOutcome>,
    /// While true, questions are kept in `held`.
    pub holds_answers: bool,
    pub held: Vec<(i64, i64, PlanRequest)>,
    pub wanted: Vec<Running>,
    pub window: u32,
    pub epoch: i64,
    /// Whether connections are accepted.
    pub is_online: bool,
    /// Whether events are acknowledged.
    pub acknowledges: bool,
    /// Number of times that each command is sent.
    pub times: usize,
    pub refuses: Option<(RefusedCode, Option<i64>)>,
    /// Whether the response to a join is lost.
    pub loses_responses: bool,
    pub next: i64,
}

/// The control plane.
#[derive(Clone)]
pub struct Plane {
    pub state: Arc<Mutex<State>>,
    /// Notifies about changes.
    pub changed: Arc<Notify>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Plane {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = State {
            url: format!("http://{}", listener.local_addr().unwrap()),
            window: 1024 * 1024,
            is_online: true,
            acknowledges: true,
            times: 1,
            next: 100,
            ..State::default()
        };
        let plane =
            Self { state: Arc::new(Mutex::new(state)), changed: Arc::default(), tasks: Arc::default() };
        let (serving, tasks) = (plane.clone_state(), Arc::clone(&plane.tasks));
        tasks.lock().unwrap().spawn(async move {
            let mut clients = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                clients.spawn(connection::serve(client, Arc::clone(&serving.0), Arc::clone(&serving.1)));
                while clients.try_join_next().is_some() {}
            }
        });
        plane
    }

    fn clone_state(&self) -> (Arc<Mutex<State>>, Arc<Notify>) {
        (Arc::clone(&self.state), Arc::clone(&self.changed))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes the state, and notifies the connections.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// A new provisioning token.
    pub fn token(&self) -> String {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).unwrap();
        let token = muster_protocol::token::of_secret(muster_protocol::token::PROVISIONING, &mut secret);
        self.lock().tokens.insert(token.to_string());
        token.to_string()
    }

    /// Sends a command, and returns its id.
    pub fn order(&self, agent_id: i64, generation: i64, command: Command) -> i64 {
        self.order_until(0, agent_id, generation, command)
    }

    pub fn order_until(&self, deadline: i64, agent_id: i64, generation: i64, command: Command) -> i64 {
        let mut id = 0;
        self.set(|state| id = state.order(deadline, agent_id, generation, command));
        id
    }

    /// Launches the reference agent, and waits until it runs.
    pub async fn launch(&self, agent_id: i64, generation: i64) {
        self.begin(agent_id, generation, "muster/agent");
        self.wait("it runs", |state| state.started(agent_id, generation).then_some(())).await;
    }

    /// Launches an image.
    pub fn begin(&self, agent_id: i64, generation: i64, image: &str) {
        self.set(|state| {
            image.clone_into(&mut state.plans.entry(agent_id).or_default().image);
            state.wanted.retain(|wanted| wanted.agent_id != agent_id);
            state.wanted.push(Running { agent_id, generation });
            state.order(0, agent_id, generation, Command::Launch);
        });
    }

    /// Sends a turn, and returns its id.
    pub fn turn(&self, agent_id: i64, generation: i64, conversation_id: i64, text: &str) -> i64 {
        let turn_id = self.plan_turn(conversation_id, text);
        self.order(agent_id, generation, Command::Turn { turn_id });
        turn_id
    }

    pub fn plan_turn(&self, conversation_id: i64, text: &str) -> i64 {
        let prompt = vec![Part::Text { author: None, text: text.to_owned() }];
        let mut turn_id = 0;
        self.set(|state| {
            state.next += 1;
            turn_id = state.next;
            let instructions = String::new();
            let plan = TurnPlan { conversation_id, session: None, instructions, prompt, is_shared: false };
            state.turns.insert(turn_id, plan);
        });
        turn_id
    }

    /// Sends a turn, and waits for its end.
    pub async fn say(&self, agent_id: i64, generation: i64, conversation_id: i64, text: &str) -> TurnEnd {
        let turn_id = self.turn(agent_id, generation, conversation_id, text);
        self.end_of(turn_id).await
    }

    pub async fn end_of(&self, turn_id: i64) -> TurnEnd {
        self.wait(&format!("turn {turn_id} ends"), |state| state.end_of(turn_id)).await
    }

    /// Sends a person's decision.
    pub fn answer(&self, agent_id: i64, generation: i64, request: &str, decision: Decision) -> i64 {
        let mut approval_id = 0;
        self.set(|state| {
            state.next += 1;
            approval_id = state.next;
            let by = Some("Ada".to_owned());
            state.answers.insert(approval_id, Answer { request: request.to_owned(), decision, by });
        });
        self.order(agent_id, generation, Command::Answer { approval_id });
        approval_id
    }

    /// Waits for a condition while the host reports anything about its agents: a slow one continues, a hung one fails.
    pub async fn wait<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        let (mut heard, mut until) = ((0, 0), Instant::now() + PATIENCE);
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if let Some(found) = look(&state) {
                    return found;
                }
                let now = (state.events.len(), state.deltas.len());
                if now != heard {
                    (heard, until) = (now, Instant::now() + PATIENCE);
                }
            }
            if until <= Instant::now() {
                let events: Vec<_> = self.lock().events.iter().rev().take(20).rev().cloned().collect();
                panic!("{what}: this did not happen. The last events: {events:#?}");
            }
            // Changes in between are seen in the next iteration.
            let _ = timeout(Duration::from_millis(20), changed).await;
        }
    }
}

impl State {
    pub fn order(&mut self, deadline: i64, agent_id: i64, generation: i64, command: Command) -> i64 {
        self.next += 1;
        let (id, seq) = (self.next, self.orders.len() as i64 + 1);
        self.orders.push(CommandEnvelope { seq, id, agent_id, generation, deadline, command });
        id
    }

    /// The agents that should run, except those whose LAUNCH is among unsent commands.
    pub fn launched(&self, commands: i64) -> Vec<Running> {
        let is_coming = |wanted: &&Running| {
            let mut later = self.orders.iter().filter(|order| order.seq > commands);
            later.any(|order| {
                order.agent_id == wanted.agent_id
                    && order.generation == wanted.generation
                    && order.command == Command::Launch
            })
        };
        self.wanted.iter().filter(|wanted| !is_coming(wanted)).copied().collect()
    }

    pub fn events_of(&self, agent_id: i64) -> impl Iterator<Item = &HostEvent> {
        self.events.iter().filter(move |event| event.agent_id == agent_id).map(|event| &event.what)
    }

    pub fn started(&self, agent_id: i64, generation: i64) -> bool {
        let mut events = self.events.iter();
        events.any(|event| {
            event.agent_id == agent_id
                && event.generation == generation
                && matches!(event.what, HostEvent::Started { .. })
        })
    }

    pub fn ended(&self, agent_id: i64, generation: i64) -> Option<HostEvent> {
        let mut events = self.events.iter();
        let found = events.find(|event| {
            event.agent_id == agent_id
                && event.generation == generation
                && matches!(event.what, HostEvent::Ended { .. })
        });
        found.map(|event| event.what.clone())
    }

    pub fn end_of(&self, turn_id: i64) -> Option<TurnEnd> {
        self.events.iter().find_map(|event| match &event.what {
            HostEvent::TurnEnded(end) if end.turn_id == turn_id => Some(end.clone()),
            _ => None,
        })
    }

    pub fn messages(&self, conversation_id: i64) -> Vec<Message> {
        let messages = self.events.iter().filter_map(|event| match &event.what {
            HostEvent::Message(message) if message.conversation_id == conversation_id => {
                Some(message.clone())
            }
            _ => None,
        });
        messages.collect()
    }

    /// The texts of a turn.
    pub fn texts(&self, turn_id: i64) -> Vec<String> {
        let texts = self.events.iter().filter_map(|event| match &event.what {
            HostEvent::Message(message) if message.turn_id == Some(turn_id) => text(message),
            _ => None,
        });
        texts.collect()
    }

    pub fn asked(&self, conversation_id: i64) -> Vec<Request> {
        let asked = self.events.iter().filter_map(|event| match &event.what {
            HostEvent::Asked(request) if request.conversation_id == conversation_id => Some(request.clone()),
            _ => None,
        });
        asked.collect()
    }

    /// Asserts the invariants: numbers without gaps, unique keys, each turn ended once and started before.
    pub fn check(&self) {
        for (at, event) in self.events.iter().enumerate() {
            assert_eq!(event.seq, at as i64 + 1, "events have no gaps");
        }
        let mut keys = BTreeSet::new();
        let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for event in &self.events {
            match &event.what {
                HostEvent::Message(message) => {
                    assert!(keys.insert((event.agent_id, &message.key)), "twice: {message:?}");
                }
                HostEvent::TurnStarted { turn_id } => {
                    assert!(started.insert(*turn_id), "started twice: {turn_id}");
                }
                HostEvent::TurnEnded(end) => {
                    assert!(ended.insert(end.turn_id), "ended twice: {end:?}");
                }
                _ => {}
            }
        }
    }
}

/// The text of a message, if it has one.
fn text(message: &Message) -> Option<String> {
    match &message.content {
        Content::Text { text } => Some(text.clone()),
        _ => None,
    }
}

/// The title of a permission request.
pub fn action(request: &Request) -> &str {
    match &request.asked {
        Asked::Action { title, .. } => title,
        Asked::Question { text, .. } => text,
    }
}
