//! The law of tenancy, for every present and future root field: no one reaches another organization, neither by
//! naming it nor by naming something in it.
//!
//! Calls are generated from the schema: each position for an id is tried in turn with an id of the other organization,
//! while everything else is valid. A new field is covered as soon as it exists. A mutation gets the arguments of
//! `harness/good_calls.rs`; other fields get values that fit their types.

use async_graphql::registry::{MetaField, MetaInputValue, MetaType, Registry};
use muster::resolvers::{Catalogue, bounds::Bounds};
use serde_json::{Map, Value, json};

use crate::harness::{Answer, Population, Spare, TestApp, good_calls, named};

/// Exempt positions for ids, with the reason. The list only shrinks: an unneeded line fails.
const EXEMPT: &[(&str, &str, &str)] = &[];

/// Positions where even one's own id isn't found, with the reason. This list only shrinks, too.
const NOT_FOUND_AT_HOME: &[(&str, &str, &str)] =
    &[("postMessage", "input.attachmentIds", "those of the population have been posted")];

/// Values by name of the argument or input field, where the type isn't enough.
fn by_name(name: &str) -> Option<Value> {
    Some(match name {
        "email" => json!("someone@example.com"),
        "q" => json!("message"),
        "url" => json!("https://example.com"),
        "timezone" => json!("Europe/Vienna"),
        "limit" => json!(10),
        "permission" => json!("agent.view"),
        "permissions" => json!(["agent.view"]),
        "fields" => json!([]),
        _ => return None,
    })
}

/// The kinds of ids, by the names of arguments and types.
fn ids<'a>(all: &'a Population, kind: &str) -> Option<&'a [i64]> {
    let kinds: [(&str, &Vec<i64>); 30] = [
        ("eventdelivery", &all.event_deliveries),
        ("endpoint", &all.event_endpoints),
        ("modelcredential", &all.model_credentials),
        ("allowedhost", &all.allowed_hosts),
        ("backup", &all.backups),
        ("erasure", &all.erasures),
        ("version", &all.policy_versions),
        ("credentialfield", &all.credential_fields),
        ("conversation", &all.conversations),
        ("servicetoken", &all.service_tokens),
        ("invitation", &all.invitations),
        ("attachment", &all.attachments),
        ("credential", &all.credentials),
        ("mcpserver", &all.mcp_servers),
        ("approval", &all.approvals),
        ("identity", &all.identities),
        ("session", &all.sessions),
        ("channel", &all.channels),
        ("contact", &all.contacts),
        ("message", &all.messages),
        ("turn", &all.turns),
        ("member", &all.members),
        ("server", &all.servers),
        ("agent", &all.agents),
        ("image", &all.images),
        ("skill", &all.skills),
        ("target", &all.agents),
        ("actor", &all.members),
        ("user", &all.members),
        ("assignee", &all.members),
    ];
    let kind = kind.to_lowercase();
    let kind = kind.trim_end_matches("id").trim_end_matches("ids");
    let last = kinds.iter().find(|(name, _)| kind.ends_with(name));
    last.or_else(|| kinds.iter().find(|(name, _)| kind.contains(name))).map(|(_, ids)| ids.as_slice())
}

/// A position in a call that takes an id.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// From the arguments down: `input`, `serverId`.
    path: Vec<String>,
    list: bool,
    required: bool,
    /// An id for this position from this organization, and one from the other.
    ours: i64,
    theirs: i64,
}

impl Place {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

struct Law<'a> {
    registry: &'a Registry,
    root: &'static str,
    field: &'a MetaField,
    ours: &'a Population,
    theirs: &'a Population,
}

/// The fields of a list that may hold its records.
const RECORDS: [&str; 2] = ["data", "edges"];

/// Ids assigned by others, which name nothing of ours.
const OF_OTHERS: [&str; 1] = ["installationId"];

impl Law<'_> {
    fn takes(&self, name: &str) -> bool {
        self.field.args.contains_key(name)
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (name, arg) in self.field.args.iter().filter(|(name, _)| *name != "orgId") {
            self.collect(arg, vec![name.clone()], &mut places);
        }
        places
    }

    fn collect(&self, value: &MetaInputValue, path: Vec<String>, places: &mut Vec<Place>) {
        if OF_OTHERS.contains(&&*value.name) {
            return;
        }
        if named(&value.ty) == "Id" {
            let (ours, theirs) = (self.id(self.ours, &value.name), self.id(self.theirs, &value.name));
            let (list, required) = (value.ty.starts_with('['), value.ty.ends_with('!'));
            places.push(Place { path, list, required, ours, theirs });
        } else if let Some(MetaType::InputObject { input_fields, .. }) =
            self.registry.types.get(named(&value.ty)).filter(|_| !value.ty.starts_with('['))
        {
            for (name, field) in input_fields {
                let path = path.iter().chain([name]).cloned().collect();
                self.collect(field, path, places);
            }
        }
    }

    /// An id for the argument `name`. A plain `id` is of the kind that the field returns or is named after.
    fn id(&self, all: &Population, name: &str) -> i64 {
        let found = if name == "id" || name == "ids" {
            let field = self.field.name.trim_end_matches("Changed");
            // This field returns the backup, but takes an agent's id.
            let returned = if field == "backupAgent" { field } else { named(&self.field.ty) };
            ids(all, returned).or_else(|| ids(all, field))
        } else {
            ids(all, name)
        };
        let missing = || panic!("{}({name}): what kind of id is this? Add it to `ids`.", self.field.name);
        found.and_then(|ids| ids.first()).copied().unwrap_or_else(missing)
    }

    /// The arguments of a call that succeeds, if it is one of the [`good_calls`].
    fn good(&self) -> Option<Value> {
        let calls = good_calls(self.theirs, Spare::of(self.theirs));
        calls.into_iter().find(|(name, _)| *name == self.field.name).map(|(_, arguments)| arguments)
    }

    /// The arguments of a call in `org` where only `foreign` is from this organization.
    fn arguments(&self, org: i64, places: &[Place], foreign: Option<&Place>) -> Value {
        let mut arguments = self.good().unwrap_or_else(|| {
            let is_needed = |name: &str, arg: &MetaInputValue| {
                name != "orgId" && (arg.ty.ends_with('!') || name == "input")
            };
            let needed = self.field.args.iter().filter(|(name, arg)| is_needed(name, arg));
            needed.map(|(name, arg)| (name.clone(), self.value(arg))).collect::<Map<_, _>>().into()
        });
        for place in places {
            let is_foreign = foreign == Some(place);
            if place.required || is_foreign {
                let id = if is_foreign { place.ours } else { place.theirs };
                let (last, path) = place.path.split_last().unwrap();
                let mut at = &mut arguments;
                for step in path {
                    at = &mut at[step];
                }
                at[last] = if place.list { json!([id]) } else { json!(id) };
            }
        }
        arguments["orgId"] = json!(org);
        arguments
    }

    fn value(&self, declared: &MetaInputValue) -> Value {
        if let Some(value) = by_name(&declared.name) {
            return value;
        }
        if declared.ty.starts_with('[') {
            return json!([]);
        }
        let bounds = Bounds::read(&declared.directive_invocations);
        match (named(&declared.ty), self.registry.types.get(named(&declared.ty))) {
            (_, Some(MetaType::InputObject { input_fields, .. })) => {
                let required = input_fields.values().filter(|field| field.ty.ends_with('!'));
                required.map(|field| (field.name.clone(), self.value(field))).collect::<Map<_, _>>().into()
            }
            (_, Some(MetaType::Enum { enum_values, .. })) => json!(enum_values.keys().next()),
            ("Int", _) => json!(bounds.min.unwrap_or(1)),
            ("Float", _) => json!(1.0),
            ("Boolean", _) => json!(true),
            ("Id", _) => json!(1),
            ("CredentialKind", _) => json!("api-key"),
            ("Timestamp", _) => json!("2026-06-02T12:00:00Z"),
            _ => json!("x".repeat(bounds.min_length.unwrap_or(1).max(12) as usize)),
        }
    }

    /// The field that holds the records, if the root field returns a list without a total.
    fn uncounted(&self) -> Option<&'static str> {
        let Some(MetaType::Object { fields, .. }) = self.registry.types.get(named(&self.field.ty)) else {
            return None;
        };
        let is_list = |field: &MetaField| {
            let of = self.registry.types.get(named(&field.ty));
            field.ty.starts_with('[') && of.is_some_and(MetaType::is_composite)
        };
        if fields.contains_key("total") {
            return None;
        }
        RECORDS.into_iter().find(|name| fields.get(*name).is_some_and(is_list))
    }

    fn document(&self, arguments: &Value) -> String {
        let given = |name: &&String| arguments.get(name.as_str()).is_some();
        let names: Vec<_> = self.field.args.keys().filter(given).collect();
        let declared: Vec<_> =
            names.iter().map(|name| format!("${name}: {}", self.field.args[*name].ty)).collect();
        let passed: Vec<_> = names.iter().map(|name| format!("{name}: ${name}")).collect();
        let selection = match (self.uncounted(), self.registry.types.get(named(&self.field.ty))) {
            (Some(records), _) => format!("{{ {records} {{ __typename }} }}"),
            (None, Some(MetaType::Object { fields, .. })) if fields.contains_key("total") => {
                "{ total }".to_owned()
            }
            (None, Some(returned)) if returned.is_composite() => "{ __typename }".to_owned(),
            _ => String::new(),
        };
        let (kind, field) = (self.root.to_lowercase(), &self.field.name);
        format!("{kind}({}) {{ {field}({}) {selection} }}", declared.join(", "), passed.join(", "))
    }

    /// Why an answer breaks the law at `place`. None if it doesn't.
    fn broken(&self, place: &Place, answer: &Answer) -> Option<String> {
        let extensions = &answer.body["errors"][0]["extensions"];
        let not_found = |violation: &Value| violation["code"] == "NOT_FOUND";
        let kept = match extensions["code"].as_str() {
            Some("NOT_FOUND") => true,
            Some("VALIDATION_FAILED") => {
                extensions["errors"].as_array().is_some_and(|errors| errors.iter().any(not_found))
            }
            // A filter may simply find nothing.
            None if self.root == "Query" && !place.required => {
                let found = &answer.body["data"][&self.field.name];
                let records = self.uncounted().map_or(found, |records| &found[records]);
                found["total"] == 0 || records.as_array().is_some_and(Vec::is_empty)
            }
            _ => false,
        };
        (!kept).then(|| format!("{} at {}: {}", self.field.name, place.name(), answer.body))
    }
}

fn laws<'a>(catalogue: &'a Catalogue, ours: &'a Population, theirs: &'a Population) -> Vec<Law<'a>> {
    let laws = catalogue.root_fields().map(|root| Law {
        registry: &catalogue.registry,
        root: root.root,
        field: root.field,
        ours,
        theirs,
    });
    laws.filter(|law| law.takes("orgId")).collect()
}

#[tokio::test]
async fn no_id_of_another_organization_is_found() {
    let app = TestApp::start().await;
    let (ours, theirs) = (app.populate(4).await, app.populate_other(4).await);
    let (mut broken, mut exempted, mut tried) = (Vec::new(), Vec::new(), 0);
    for law in laws(&app.service.graphql.catalogue, &ours, &theirs) {
        let places = law.places();
        for place in places.iter().filter(|_| law.root != "Subscription") {
            let arguments = law.arguments(app.other_org, &places, Some(place));
            let answer = app.stranger.gql(&law.document(&arguments), arguments).await;
            tried += 1;
            let exempt = EXEMPT.iter().find(|(f, p, _)| law.field.name == *f && place.name() == *p);
            match (law.broken(place, &answer), exempt) {
                (Some(_), Some(line)) => exempted.push(line),
                (Some(why), None) => broken.push(why),
                (None, _) => {}
            }
        }
    }
    assert!(broken.is_empty(), "{} of {tried}:\n{}", broken.len(), broken.join("\n"));
    let stale: Vec<_> = EXEMPT.iter().filter(|line| !exempted.contains(line)).collect();
    assert!(stale.is_empty(), "no longer needed: {stale:?}");
    assert!(tried > 10, "{tried}");
}

/// The same calls with the organization's own ids: if those weren't found, the test above would prove nothing.
#[tokio::test]
async fn the_same_calls_find_their_own_records() {
    let app = TestApp::start().await;
    let theirs = app.populate_other(4).await;
    let mut laws = laws(&app.service.graphql.catalogue, &theirs, &theirs);
    let ends =
        |law: &Law<'_>| ["delete", "remove", "revoke"].iter().any(|verb| law.field.name.starts_with(verb));
    laws.retain(|law| law.root != "Subscription" && !ends(law));
    let (mut lost, mut excused) = (Vec::new(), Vec::new());
    for law in laws {
        let places = law.places();
        for place in &places {
            let arguments = law.arguments(app.other_org, &places, Some(place));
            let answer = app.stranger.gql(&law.document(&arguments), arguments).await;
            let refused = !answer.body["errors"].is_null();
            if !refused || law.broken(place, &answer).is_some() {
                continue;
            }
            match NOT_FOUND_AT_HOME.iter().find(|(f, p, _)| law.field.name == *f && place.name() == *p) {
                Some(line) => excused.push(line),
                None => lost.push(format!("{} at {}: {}", law.field.name, place.name(), answer.body)),
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    let stale: Vec<_> = NOT_FOUND_AT_HOME.iter().filter(|line| !excused.contains(line)).collect();
    assert!(stale.is_empty(), "no longer needed: {stale:?}");
}
