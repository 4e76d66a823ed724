//! A variable that isn't given counts as a field that isn't given: an edit keeps what it doesn't name,
//! however the document spells its input (GraphQL specification, section 3.10).

use async_graphql::registry::{MetaInputValue, MetaType};
use serde_json::{Value, json};

use crate::harness::{Answer, Population, TestApp, Walker, named};

/// The id of the record a mutation edits. None for the organization itself.
fn target(mutation: &str, all: &Population) -> Option<i64> {
    Some(match mutation {
        "updateServer" => all.servers[0],
        "updateImage" => all.images[0],
        "updateAgent" => all.agents[0],
        "updateChannel" => all.channels[0],
        "updateContact" => all.contacts[0],
        "updateConversation" => all.conversations[0],
        "updateCredential" => all.credentials[0],
        "updateMcpServer" => all.mcp_servers[0],
        "updateSkill" => all.skills[0],
        "updateServiceToken" => all.service_tokens[0],
        "updateMember" => all.members[0],
        "updateModelCredential" => all.model_credentials[0],
        "updateEventEndpoint" => all.event_endpoints[0],
        "updateOrganization" => return None,
        other => panic!("{other} edits something this law does not know"),
    })
}

/// The fields of an object that need no arguments, including those of nested objects.
fn fields(walker: &Walker, ty: &str, depth: usize) -> String {
    let fields = walker.children(ty, 8).unwrap_or_default().into_iter().filter_map(|(field, _)| {
        // A different revision of the same record is still the same record.
        match walker.is_object(&field.ty) {
            _ if field.name == "revision" => None,
            false => Some(field.name.clone()),
            true if depth == 0 || field.ty.starts_with('[') => None,
            true => Some(format!("{} {}", field.name, fields(walker, &field.ty, depth - 1))),
        }
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(" "))
}

fn input_fields<'a>(walker: &'a Walker, ty: &str) -> Vec<&'a MetaInputValue> {
    match walker.catalogue.registry.types.get(named(ty)) {
        Some(MetaType::InputObject { input_fields, .. }) => input_fields.values().collect(),
        _ => Vec::new(),
    }
}

/// Any value of a type.
fn value(walker: &Walker, ty: &str) -> Value {
    match named(ty) {
        _ if ty.starts_with('[') => json!([]),
        "Id" | "Int" => json!(7),
        "Float" => json!(1.5),
        "Boolean" => json!(true),
        "Timestamp" => json!("2027-01-01T00:00:00Z"),
        "Labels" | "JSON" => json!({}),
        "Permission" => json!("agent.view"),
        other => match walker.catalogue.registry.types.get(other) {
            Some(MetaType::Enum { enum_values, .. }) => json!(enum_values.keys().next()),
            Some(MetaType::InputObject { .. }) => json!({}),
            _ => json!("1"),
        },
    }
}

/// The contents of an answer, without what differs between answers.
fn said(answer: &Answer) -> Value {
    let codes: Vec<&Value> = answer.body["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|error| &error["extensions"]["code"])
        .collect();
    json!({ "data": answer.body["data"], "errors": codes })
}

/// `{a: {b: …}}`.
fn nested(path: &[&str], inner: Value) -> Value {
    path.iter().rev().fold(inner, |inner, key| json!({ *key: inner }))
}

#[tokio::test]
async fn a_missing_variable_leaves_an_edits_field_alone() {
    let (app, all) = TestApp::populated(4).await;
    let walker = Walker::new();
    let mut tried = 0;
    let edits = walker.catalogue.root_fields().filter(|root| {
        root.root == "Mutation"
            && root.field.args.get("input").is_some_and(|input| input.ty.starts_with("Update"))
            && root.field.args.contains_key("orgId")
    });
    for edit in edits {
        let (name, input) = (&edit.field.name, &edit.field.args["input"].ty);
        let (declared, given, variables) = match target(name, &all) {
            None => ("$o: Id!", "orgId: $o", json!({ "o": app.org })),
            Some(id) if name == "updateMember" => {
                ("$o: Id!, $id: Id!", "orgId: $o, userId: $id", json!({ "o": app.org, "id": id }))
            }
            Some(id) => ("$o: Id!, $id: Id!", "orgId: $o, id: $id", json!({ "o": app.org, "id": id })),
        };
        let selection = fields(&walker, &edit.field.ty, 1);
        let whole =
            format!("mutation({declared}, $input: {input}) {{ {name}({given}, input: $input) {selection} }}");
        let with = |key: &str, value: Value| {
            let mut variables = variables.clone();
            variables[key] = value;
            variables
        };
        let mut paths: Vec<(Vec<&str>, &str)> = Vec::new();
        for field in input_fields(&walker, input) {
            paths.push((vec![&field.name], &field.ty));
            if !field.ty.starts_with('[') {
                let inner = input_fields(&walker, &field.ty).into_iter();
                paths.extend(inner.map(|inner| (vec![&*field.name, &*inner.name], &*inner.ty)));
            }
        }
        for (path, ty) in paths {
            let literal = path.iter().rev().fold("$v".to_owned(), |inner, key| format!("{{{key}: {inner}}}"));
            let nullable = ty.trim_end_matches('!');
            let apart = format!(
                "mutation({declared}, $v: {nullable}) {{ {name}({given}, input: {literal}) {selection} }}"
            );
            // Left out: the same as if the innermost object were empty.
            let empty = nested(&path[..path.len() - 1], json!({}));
            let before = app.owner.gql(&whole, with("input", empty)).await;
            let answer = app.owner.gql(&apart, variables.clone()).await;
            assert_eq!(said(&answer), said(&before), "{name} {path:?} left out: {}", answer.text);
            // Null and a value: the same as in one variable for the whole input.
            for value in [Value::Null, value(&walker, ty)] {
                let expected = app.owner.gql(&whole, with("input", nested(&path, value.clone()))).await;
                let answer = app.owner.gql(&apart, with("v", value.clone())).await;
                assert_eq!(said(&answer), said(&expected), "{name} {path:?} {value}: {}", answer.text);
            }
            tried += 1;
        }
    }
    assert!(tried > 100, "only {tried} fields");
}

#[tokio::test]
async fn secrets_and_expiries_survive_unrelated_edits() {
    let (app, all) = TestApp::populated(4).await;
    let org = app.org;

    let skill = "mutation($o: Id!, $id: Id!, $d: String, $m: String) { \
                 updateSkill(orgId: $o, id: $id, input: {description: $d, model: $m}) { description model } }";
    let with = json!({ "o": org, "id": all.skills[0], "d": "keep" });
    assert_eq!(app.owner.gql(skill, with).await.data()["updateSkill"]["description"], "keep");
    let edited = app.owner.gql(skill, json!({ "o": org, "id": all.skills[0], "m": "m2" })).await.data();
    assert_eq!(edited["updateSkill"], json!({ "description": "keep", "model": "m2" }));

    let agent = "mutation($o: Id!, $id: Id!, $n: String, $r: String, $c: SecretString) { updateAgent(orgId: $o, \
                 id: $id, input: {name: $n, role: $r, modelCredential: $c}) { role hasModelCredential } }";
    let with = json!({ "o": org, "id": all.agents[0], "c": "sk-kept" });
    assert_eq!(app.owner.gql(agent, with).await.data()["updateAgent"]["hasModelCredential"], true);
    let edited = app.owner.gql(agent, json!({ "o": org, "id": all.agents[0], "r": "edited" })).await.data();
    assert_eq!(edited["updateAgent"], json!({ "role": "edited", "hasModelCredential": true }));

    let made = json!({ "name": "hook", "transport": "WEBHOOK", "agentId": all.agents[0],
        "webhook": { "outboundUrl": "https://hook.example/in", "inboundSecret": "a long secret text" } });
    let create = "mutation($o: Id!, $i: CreateChannelInput!) { createChannel(orgId: $o, input: $i) { id } }";
    let hook =
        app.owner.gql(create, json!({ "o": org, "i": made })).await.data()["createChannel"]["id"].clone();
    let channel = "mutation($o: Id!, $id: Id!, $h: String, $i: SecretString, $s: SecretString) { updateChannel(orgId: \
                   $o, id: $id, input: {webhook: {signatureHeader: $h, inboundSecret: $i, outboundSecret: $s}}) \
                   { webhook { signatureHeader hasInboundSecret } } }";
    let edited = app.owner.gql(channel, json!({ "o": org, "id": hook, "h": "X-Signed" })).await.data();
    let webhook = &edited["updateChannel"]["webhook"];
    assert_eq!(*webhook, json!({ "signatureHeader": "X-Signed", "hasInboundSecret": true }));

    let made = json!({ "name": "kept", "kind": "custom", "fields": [{ "label": "a", "type": "secret", "value": "x" }] });
    let create =
        "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i) { id } }";
    let made = app.owner.gql(create, json!({ "o": org, "i": made })).await.data();
    let credential = "mutation($o: Id!, $id: Id!, $v: SecretString) { updateCredential(orgId: $o, id: $id, \
                      input: {fields: [{label: \"a\", value: $v}]}) { fields { label hasValue } } }";
    let with = json!({ "o": org, "id": made["createCredential"]["id"] });
    let edited = app.owner.gql(credential, with).await.data();
    assert_eq!(edited["updateCredential"]["fields"], json!([{ "label": "a", "hasValue": true }]));

    let token = "mutation($o: Id!, $id: Id!, $n: String, $e: Timestamp) { \
                 updateServiceToken(orgId: $o, id: $id, input: {name: $n, expiresAt: $e}) { name expiresAt } }";
    let ends = "2099-01-01T00:00:00.000Z";
    let id = all.service_tokens[0];
    app.owner.gql(token, json!({ "o": org, "id": id, "e": ends })).await.data();
    let edited = app.owner.gql(token, json!({ "o": org, "id": id, "n": "renamed" })).await.data();
    assert_eq!(edited["updateServiceToken"], json!({ "name": "renamed", "expiresAt": ends }));
}

#[tokio::test]
async fn an_argument_with_a_missing_variable_has_its_default() {
    let app = TestApp::start().await;
    app.populate(4).await;
    let list = "query($o: Id!) { skills(orgId: $o, page: 1, limit: 9) { total data { id } } }";
    let given = app.viewer.gql(list, json!({ "o": app.org })).await.data();
    let list = "query Skills($o: Id!, $a: Boolean) { ...q } query Other($o: Id!, $a: Boolean = true) { ...q } \
                fragment q on Query { skills(orgId: $o, page: 1, limit: 9, includeArchived: $a) { total data { id } } }";
    let body = json!({ "query": list, "operationName": "Skills", "variables": { "o": app.org } });
    for _ in 0..2 {
        let request = app.viewer.request(reqwest::Method::POST, "/graphql").json(&body);
        assert_eq!(Answer::of(request).await.data(), given);
    }
}
