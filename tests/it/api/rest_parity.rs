//! REST is the schema: each operation answers exactly what its stored document answers through `/graphql`, the
//! specification's with all fields of the specification and in its order.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    api::calls::{RECORDS, answers_with, calls, keys, snake},
    harness::{Spare, TestApp},
};

/// Differences between two services by design: random values, and values that show which interface was used.
const DIFFERENT: &[&str] = &["provisioning_token", "inbound_path", "decided_via", "ref"];

#[tokio::test]
async fn a_route_answers_as_its_document_does() {
    // The same data twice, with the same ids, because each interface changes its own copy.
    let (rest, graphql) = (TestApp::start().await, TestApp::start().await);
    let (all, same) = (rest.populate(4).await, graphql.populate(4).await);
    assert_eq!(all.messages, same.messages);
    let spare = Spare::make(&rest, &all).await;
    assert_eq!(spare, Spare::make(&graphql, &same).await);
    let documents = documents("schema/rest");
    for call in calls(&all, spare) {
        let url = call.url(rest.org);
        let answer = rest.owner.send(call.method.clone(), &url, &call.body).await;
        assert_eq!(answer.status, call.status, "{} {url}: {:#}", call.method, answer.body);
        assert!(answer.header("content-type").starts_with("application/json"), "{url}");
        let data = graphql.owner.gql(&documents[call.operation], call.variables(graphql.org)).await.data();
        let (_, root) = data.as_object().unwrap().iter().next().unwrap();
        let (by_rest, by_graphql) = (redacted(&answer.body), redacted(&keys(root, &snake)));
        assert_eq!(by_rest.to_string(), by_graphql.to_string(), "{} {url}", call.method);
    }
}

#[tokio::test]
async fn the_last_releases_documents_still_run() {
    let (app, all) = TestApp::populated(4).await;
    let spare = Spare::make(&app, &all).await;
    let (released, calls) = (documents("tests/released/rest"), calls(&all, spare));
    assert!(released.len() >= 27);
    let gone: Vec<&String> =
        released.keys().filter(|name| calls.iter().all(|call| call.operation != name.as_str())).collect();
    assert!(gone.is_empty(), "no longer there: {gone:?}");
    for call in calls {
        let Some(document) = released.get(call.operation) else { continue };
        let answer = app.owner.gql(document, call.variables(app.org)).await;
        assert!(answer.body["errors"].is_null(), "{} of the last release: {:#}", call.operation, answer.body);
    }
}

#[tokio::test]
async fn the_specifications_operations_are_described_as_released() {
    let app = TestApp::start().await;
    let document = app.anonymous.get("/openapi.json").await.expect(200);
    let released: Value = serde_json::from_str(include_str!("../../released/paths.json")).unwrap();
    let released = released.as_object().unwrap();
    let operations = released.iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, described)| (path, method, described))
    });
    let mut compared = 0;
    for (path, method, described) in operations {
        let now = &document["paths"][path.as_str()][method.as_str()];
        assert_eq!(now.to_string(), described.to_string(), "{method} {path}");
        compared += 1;
    }
    assert_eq!(compared, 27);
}

/// The texts of a folder's operations, each with the fragments it uses.
fn documents(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut documents = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "graphql") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        let definitions: Vec<String> = definitions(&text);
        for operation in definitions.iter().filter(|text| !text.starts_with("fragment")) {
            let mut document = operation.clone();
            while let Some(fragment) = missing(&document, &definitions) {
                document.push_str(fragment);
            }
            let name = operation.split([' ', '(']).nth(1).unwrap().to_owned();
            documents.insert(name, document);
        }
    }
    documents
}

/// A definition starts at the beginning of a line.
fn definitions(text: &str) -> Vec<String> {
    let mut definitions: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if ["query", "mutation", "fragment"].iter().any(|word| line.starts_with(word)) {
            definitions.push(String::new());
        }
        if let Some(definition) = definitions.last_mut() {
            definition.push_str(line);
            definition.push('\n');
        }
    }
    definitions
}

/// A fragment that the document uses and doesn't have.
fn missing<'a>(document: &str, definitions: &'a [String]) -> Option<&'a String> {
    let used = document.split("...").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let heads: Vec<String> = used.map(|name| format!("fragment {name} on ")).collect();
    let head = heads.iter().find(|head| !document.contains(head.as_str()))?;
    Some(definitions.iter().find(|text| text.starts_with(head)).unwrap_or_else(|| panic!("no {head}")))
}

fn redacted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(redacted).collect(),
        Value::Object(fields) => {
            let redact = |(name, value): (&String, &Value)| {
                let different = DIFFERENT.contains(&name.as_str()) && value.is_string();
                (name.clone(), if different { json!("different") } else { redacted(value) })
            };
            Value::Object(fields.iter().map(redact).collect())
        }
        value => value.clone(),
    }
}

#[tokio::test]
async fn records_have_the_fields_of_the_specification_in_its_order() {
    let (app, all) = TestApp::populated(6).await;
    let mut seen = Vec::new();
    let spare = Spare::make(&app, &all).await;
    for call in calls(&all, spare) {
        let answer =
            app.owner.send(call.method.clone(), &call.url(app.org), &call.body).await.expect(call.status);
        let (record, around) = answers_with(call.operation);
        let records = match &answer {
            Value::Array(records) => records.clone(),
            page if !around.is_empty() => {
                assert_eq!(names(page), around, "{}", call.operation);
                page["data"].as_array().unwrap().clone()
            }
            one => vec![one.clone()],
        };
        assert!(!records.is_empty(), "{}: there is nothing to check", call.operation);
        for mut found in records {
            // Only shown in these two answers, after everything else.
            if matches!(call.operation, "CreateServer" | "RegenerateProvisioningToken") {
                let token = found.as_object_mut().unwrap().shift_remove("provisioning_token");
                assert!(token.is_some_and(|token| token.is_string()), "{}", call.operation);
            }
            check(call.operation, record, &found, &mut seen);
        }
    }
    let unseen: Vec<&str> =
        RECORDS.iter().map(|(name, _)| *name).filter(|name| !seen.contains(&(*name).to_owned())).collect();
    assert!(unseen.is_empty(), "no answer had these: {unseen:?}");
}

/// Checks a record and the objects in it.
fn check(operation: &str, place: &str, found: &Value, seen: &mut Vec<String>) {
    let Some((_, fields)) = RECORDS.iter().find(|(name, _)| *name == place) else { return };
    match found {
        Value::Object(record) => {
            assert_eq!(
                names(found),
                fields.split_whitespace().collect::<Vec<_>>().join(" "),
                "{operation}: {place}"
            );
            seen.push(place.to_owned());
            for (name, value) in record {
                check(operation, &format!("{place}.{name}"), value, seen);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check(operation, place, item, seen)),
        Value::Null => {}
        other => panic!("{operation}: {place} is not an object: {other}"),
    }
}

fn names(object: &Value) -> String {
    object.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}
