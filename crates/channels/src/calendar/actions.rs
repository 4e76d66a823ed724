//! Actions: creating and moving events, and answering invitations. Each leaves its id in the event, so that a repetition
//! changes nothing. No one is notified by Google: people see the change in their calendars.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Account, Calendars};
use crate::{
    bounds,
    contract::{Action, ActionCall, Cause, Failure, Receipt},
    icalendar::{At, Change, NewEvent, Partstat},
};

/// What agents do.
pub const ACTIONS: [Action; 3] = [
    Action {
        name: "create_event",
        title: "Create event",
        description: "Creates an event in a calendar.",
        schema: r#"{
            "type": "object", "additionalProperties": false, "required": ["title", "start", "end"],
            "properties": {
                "title": { "type": "string" },
                "start": { "type": "string", "description": "A time with its zone, such as 2026-12-01T10:00:00+01:00, or a day." },
                "end": { "type": "string", "description": "The end, in the same form. That of whole days is the day after the last one." },
                "place": { "type": "string" },
                "description": { "type": "string" },
                "invite": { "type": "array", "items": { "type": "string" }, "description": "E-mail addresses." },
                "calendar": { "type": "string", "description": "The name of the calendar. Without it, that of this conversation." }
            }
        }"#,
        check: |arguments| read::<Creation>(arguments)?.event().map(drop),
        risk: 40,
        is_idempotent: true,
    },
    Action {
        name: "move_event",
        title: "Move event",
        description: "Moves the event of this conversation to another time.",
        schema: r#"{
            "type": "object", "additionalProperties": false, "required": ["start"],
            "properties": {
                "start": { "type": "string", "description": "A time with its zone, such as 2026-12-01T10:00:00+01:00, or a day." },
                "end": { "type": "string", "description": "The end, in the same form. Without it, the event lasts as long as before." }
            }
        }"#,
        check: |arguments| read::<Move>(arguments)?.change().map(drop),
        risk: 40,
        is_idempotent: true,
    },
    Action {
        name: "answer_invitation",
        title: "Answer invitation",
        description: "Answers the invitation to the event of this conversation.",
        schema: r#"{
            "type": "object", "additionalProperties": false, "required": ["answer"],
            "properties": { "answer": { "enum": ["accept", "decline", "tentative"] } }
        }"#,
        check: |arguments| read::<Reply>(arguments).map(drop),
        risk: 30,
        is_idempotent: true,
    },
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Creation {
    title: String,
    start: String,
    end: String,
    place: Option<String>,
    description: Option<String>,
    #[serde(default)]
    invite: Vec<String>,
    calendar: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    start: String,
    end: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    answer: Answer,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Accept,
    Decline,
    Tentative,
}

impl Creation {
    fn event(self) -> Result<NewEvent, Cause> {
        let is_address = |address: &&String| {
            let is_plain = address.chars().all(|c| !c.is_whitespace() && !c.is_control());
            is_plain && address.len() <= bounds::NAME && address.contains('@')
        };
        if let Some(wrong) = self.invite.iter().find(|address| !is_address(address)) {
            return Err(format!("`{wrong}` is not an e-mail address.").into());
        }
        if self.invite.len() > bounds::LIST {
            return Err("Too many people are invited.".into());
        }
        let (start, end) = (At::parse(&self.start)?, At::parse(&self.end)?);
        if !start.is_before(end) {
            return Err("The event must end after its start, and both are times or both are days.".into());
        }
        let Self { title, place, description, invite, .. } = self;
        Ok(NewEvent { title, start, end, place, description, invited: invite })
    }
}

impl Move {
    fn change(&self) -> Result<Change, Cause> {
        let end = self.end.as_deref().map(At::parse).transpose()?;
        Ok(Change::Move { start: At::parse(&self.start)?, end })
    }
}

impl Reply {
    fn change(&self, addresses: Vec<String>) -> Change {
        let partstat = match self.answer {
            Answer::Accept => Partstat::Accepted,
            Answer::Decline => Partstat::Declined,
            Answer::Tentative => Partstat::Tentative,
        };
        Change::Answer { partstat, addresses }
    }
}

fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, Cause> {
    let read = T::deserialize(arguments);
    read.map_err(|error| format!("The arguments are not valid: {error}.").into())
}

/// Performs an action.
pub async fn act(calendars: &Calendars, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let account = calendars.account()?;
    let of_conversation = call.target.split_once(' ');
    let (calendar, event) =
        of_conversation.ok_or_else(|| Failure::Refused("This conversation is about no event.".into()))?;
    let change = match call.name {
        "create_event" => return create(calendars, account, calendar, call).await,
        "move_event" => read::<Move>(call.arguments).and_then(|to| to.change()).map_err(Failure::Refused)?,
        "answer_invitation" => {
            let reply = read::<Reply>(call.arguments).map_err(Failure::Refused)?;
            reply.change(account.addresses().await?)
        }
        name => return Err(Failure::Refused(format!("Calendars have no action {name}.").into())),
    };
    let calendar = choose(calendars, calendar)?;
    match account {
        Account::CalDav(server) => server.change(calendar, event, call.id, &change).await?,
        Account::Google(google) => google.change(calendar, event, call.id, &change).await?,
    }
    Ok(Receipt { vendor_id: Some(event.to_owned()), target: None })
}

async fn create(
    calendars: &Calendars,
    account: &Account,
    calendar: &str,
    call: &ActionCall<'_>,
) -> Result<Receipt, Failure> {
    let creation = read::<Creation>(call.arguments).map_err(Failure::Refused)?;
    let calendar = choose(calendars, creation.calendar.as_deref().unwrap_or(calendar))?.to_owned();
    let new = creation.event().map_err(Failure::Refused)?;
    let event = match account {
        Account::CalDav(server) => server.create(&calendar, call.id, &new).await?,
        Account::Google(google) => google.create(&calendar, call.id, &new).await?,
    };
    Ok(Receipt { vendor_id: Some(event), target: None })
}

/// The id of a chosen calendar with this id or name.
fn choose<'a>(calendars: &'a Calendars, named: &str) -> Result<&'a str, Failure> {
    let chosen = &calendars.config.calendars;
    let found = chosen.iter().find(|calendar| calendar.id == named || calendar.name == named);
    let names = || chosen.iter().map(|calendar| &*calendar.name).collect::<Vec<_>>().join(", ");
    found.map(|calendar| &*calendar.id).ok_or_else(|| {
        Failure::Refused(format!("The channel has no calendar \"{named}\". It has: {}", names()).into())
    })
}
