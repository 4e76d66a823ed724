//! Documents: which are valid, the order of answers, and how many are cached.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp};

/// The positions of these keys in the answer's text.
fn order(answer: &Answer, keys: &[&str]) -> Vec<usize> {
    keys.iter().map(|key| answer.text.find(&format!("\"{key}\":")).expect("the key is there")).collect()
}

#[tokio::test]
async fn root_fields_are_answered_in_the_order_of_the_document() {
    let app = TestApp::start().await;
    app.populate(3).await;
    let o = app.org;
    let documents = [
        format!(
            "{{ a: auditLog(orgId: {o}, page: 1, limit: 50) {{ total data {{ id }} }} b: images(orgId: {o}) \
             {{ id }} c: organization(orgId: {o}) {{ name }} d: __typename }}"
        ),
        format!(
            "{{ ...f d: __typename }} fragment f on Query {{ a: agents(orgId: {o}, page: 1, limit: 3) {{ total data \
             {{ id name }} }} b: organization(orgId: {o}) {{ name }} ... {{ c: __schema {{ __typename }} }} }}"
        ),
        format!(
            "query($no: Boolean = false) {{ a: auditLog(orgId: {o}, page: 1, limit: 9) {{ total }} b: viewer {{ __typename }} \
             c: organization(orgId: {o}) {{ name }} d: __typename x: organization(orgId: {o}) @include(if: $no) {{ name }} }}"
        ),
    ];
    for document in &documents {
        for _ in 0..20 {
            let answer = app.owner.gql(document, json!({})).await;
            assert!(answer.body["errors"].is_null(), "{document}: {}", answer.text);
            let places = order(&answer, &["a", "b", "c", "d"]);
            assert!(places.is_sorted(), "{document}: {}", answer.text);
            assert!(answer.body["data"].get("x").is_none(), "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn two_selections_of_one_root_are_merged_in_order() {
    let (app, agent) = TestApp::with_agent().await;
    let document = "query($o: Id!, $a: Id!, $yes: Boolean!) { r: agent(orgId: $o, id: $a) { status } ...f \
                    r: agent(orgId: $o, id: $a) @include(if: $yes) { name server { name } } } \
                    fragment f on Query { r: agent(orgId: $o, id: $a) { id server { id } } }";
    for _ in 0..20 {
        let answer = app.viewer.gql(document, json!({ "o": app.org, "a": agent, "yes": true })).await;
        let keys: Vec<&String> = answer.body["data"]["r"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["status", "id", "server", "name"], "{}", answer.text);
        let server: Vec<&String> = answer.body["data"]["r"]["server"].as_object().unwrap().keys().collect();
        assert_eq!(server, ["id", "name"]);
    }
    let answer = app.viewer.gql(document, json!({ "o": app.org, "a": agent, "yes": false })).await;
    assert!(answer.body["data"]["r"].get("name").is_none(), "{}", answer.text);
}

#[tokio::test]
async fn conflicting_fields_are_refused_wherever_they_appear() {
    let (app, agent) = TestApp::with_agent().await;
    let o = app.org;
    for document in [
        format!("{{ agents(orgId: {o}, page: 1, limit: 1) {{ data {{ x: id }} data {{ x: name }} }} }}"),
        format!(
            "{{ r: agent(orgId: {o}, id: {agent}) {{ x: id }} r: agent(orgId: {o}, id: {agent}) {{ x: name }} }}"
        ),
        format!("{{ agent(orgId: {o}, id: {agent}) {{ server {{ x: id }} server {{ x: name }} }} }}"),
        format!(
            "{{ r: agent(orgId: {o}, id: {agent}) {{ id }} ...f }} fragment f on Query {{ r: agent(orgId: {o}, id: 7) {{ id }} }}"
        ),
    ] {
        for _ in 0..2 {
            let request = app.owner.request(Method::POST, "/graphql").json(&json!({ "query": document }));
            let answer = Answer::of(request.header("accept", "application/graphql-response+json")).await;
            assert_eq!((answer.status, answer.code().as_str()), (400, "VALIDATION_FAILED"), "{document}");
            assert!(answer.text.contains("Give one of them an alias."), "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn an_operation_emptied_by_directives_is_an_empty_object() {
    let app = TestApp::start().await;
    let document =
        "query($o: Id!, $s: Boolean!) { agents(orgId: $o, page: 1, limit: 1) @skip(if: $s) { total } }";
    assert_eq!(app.viewer.gql(document, json!({ "o": app.org, "s": true })).await.text, r#"{"data":{}}"#);
    let answer = app.viewer.gql(document, json!({ "o": app.org, "s": false })).await;
    assert_eq!(answer.data(), json!({ "agents": { "total": 0 } }));
}

#[tokio::test]
async fn values_are_coerced_as_the_specification_says() {
    let (app, all) = TestApp::populated(3).await;
    let (o, skill, agent) = (app.org, all.skills[0], all.agents[1]);
    // A single value stands for a list of one, in a document, a variable, and an object.
    let literal = format!(
        "mutation {{ setSkillAgents(orgId: {o}, id: {skill}, input: {{agentIds: {agent}}}) {{ agents {{ id }} }} }}"
    );
    let variable = "mutation($o: Id!, $s: Id!, $a: [Id!]!) { setSkillAgents(orgId: $o, id: $s, input: {agentIds: $a}) { agents { id } } }";
    let object = "mutation($o: Id!, $s: Id!, $i: SetAgentsInput!) { setSkillAgents(orgId: $o, id: $s, input: $i) { agents { id } } }";
    for (document, variables) in [
        (&*literal, json!({})),
        (variable, json!({ "o": o, "s": skill, "a": agent })),
        (object, json!({ "o": o, "s": skill, "i": { "agentIds": agent } })),
    ] {
        let set = app.owner.gql(document, variables).await.data();
        assert_eq!(set["setSkillAgents"]["agents"], json!([{ "id": agent }]), "{document}");
    }
    // An enum value is a string in JSON but not in a document.
    let of = |status: &str, default: &str| {
        let list = format!("conversations(orgId: {o}, status: {status}, sort: $s) {{ total }}");
        format!("query($s: ConversationSort = {default}) {{ {list} }}")
    };
    let by = |sort: Value| json!({ "s": sort });
    app.owner.gql(&of("OPEN", "activity"), by(json!("contact"))).await.data();
    for (document, variables) in [
        (of("\"OPEN\"", "activity"), json!({})),
        (of("OPEN", "\"activity\""), json!({})),
        (of("OPEN", "activity"), by(json!("nothing"))),
    ] {
        let answer = app.owner.gql(&document, variables).await;
        assert_eq!(answer.code(), "VALIDATION_FAILED", "{document}: {}", answer.text);
    }
    // The error for an unknown enum value lists the known ones.
    for (document, variables) in [
        (of("OPNE", "activity"), json!({})),
        (of("OPEN", "activty"), json!({})),
        (of("OPEN", "activity"), by(json!("activty"))),
    ] {
        let answer = app.owner.gql(&document, variables).await;
        assert_eq!(answer.code(), "VALIDATION_FAILED", "{document}");
        assert!(answer.text.contains("must be one of"), "{}", answer.text);
        assert!(answer.text.contains("did you mean"), "{}", answer.text);
    }
    // The message for a wrong id says what an id is.
    let typed = "query($o: Id!) { organization(orgId: $o) { name } }";
    for answer in [
        app.owner.gql(typed, json!({ "o": "1" })).await,
        app.owner.gql("{ organization(orgId: \"1\") { name } }", json!({})).await,
        app.anonymous.gql(typed, json!({ "o": "1" })).await,
    ] {
        assert_eq!(answer.code(), "VALIDATION_FAILED");
        assert!(answer.text.contains("a positive integer"), "{}", answer.text);
    }
    // Each that is out of range is named.
    let feed = "query($o: Id!, $channel: Id, $contact: Id) { conversationFeed(orgId: $o, channelId: $channel, contactId: $contact) { next } }";
    let answer = app.owner.gql(feed, json!({ "o": o, "channel": 0, "contact": 1_i64 << 53 })).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    let wrong = answer.body["errors"][0]["extensions"]["errors"].as_array().unwrap();
    let wrong: Vec<_> = wrong.iter().map(|wrong| (&wrong["pointer"], &wrong["code"])).collect();
    let (small, large) = ((json!("/channel"), json!("TOO_SMALL")), (json!("/contact"), json!("TOO_LARGE")));
    assert_eq!(wrong, [(&small.0, &small.1), (&large.0, &large.1)], "{}", answer.text);
    let answer = app.owner.gql("{ organization(orgId: -1) { name } }", json!({})).await;
    assert!(answer.text.contains("orgId") && answer.text.contains("a positive integer"), "{}", answer.text);
    let missing = app.owner.gql(typed, json!({})).await;
    assert_eq!(missing.code(), "VALIDATION_FAILED");
    assert!(
        missing.body.get("data").is_none() && missing.text.contains("`o` is required."),
        "{}",
        missing.text
    );
    // A timestamp has the documented format.
    let token = "mutation($o: Id!, $t: Id!, $e: Timestamp) { updateServiceToken(orgId: $o, id: $t, input: {expiresAt: $e}) { expiresAt } }";
    for (text, taken) in [
        ("2099-12-01T00:00:00+01:00", true),
        ("2099-12-01 00:00:00Z", false),
        ("20991201T000000Z", false),
        ("2099-12-01T00:00Z", false),
    ] {
        let answer = app.owner.gql(token, json!({ "o": o, "t": all.service_tokens[0], "e": text })).await;
        assert_eq!(answer.body["errors"].is_null(), taken, "{text}: {}", answer.text);
    }
}

#[tokio::test]
async fn of_very_many_wrong_values_a_hundred_are_named() {
    let app = TestApp::start().await;
    let (o, wrong) = (app.org, vec!["NOTHING"; 3_000]);
    let of = |kinds: &str| format!("search(orgId: {o}, q: \"x\", kinds: {kinds}) {{ id }}");
    let in_document = format!("{{ {} }}", of(&format!("[{}]", wrong.join(","))));
    assert_eq!(app.viewer.gql(&in_document, json!({})).await.body["errors"].as_array().unwrap().len(), 100);
    let in_variable = format!("query($k: [RecordKind!]) {{ {} }}", of("$k"));
    let answer = app.viewer.gql(&in_variable, json!({ "k": wrong })).await;
    let named = &answer.body["errors"][0]["extensions"]["errors"];
    assert_eq!(named.as_array().unwrap().len(), 100, "{}", named[0]);
    assert_eq!(named[0]["code"], "NOT_ALLOWED", "{}", named[0]);
}

/// A document unlike the others.
fn document(n: usize, fields: usize) -> String {
    let names: String = (0..fields).map(|_| " id name status").collect();
    format!("query Q{n}($o: Id!) {{ agents(orgId: $o, page: 1, limit: 1) {{ data {{{names} }} total }} }}")
}

#[tokio::test]
async fn documents_are_cached_by_weight_and_only_for_known_callers() {
    let most = 4 << 20;
    let app = TestApp::start_with(|config| config.limits.document_cache_bytes = most).await;
    let org = json!({ "o": app.org });
    app.viewer.gql(&document(0, 1), org.clone()).await.data();
    let (little, one) = app.service.graphql.documents.weight();
    assert_eq!(one, 1);
    assert!(little < 20_000, "{little}");
    // Strangers' documents take no room, answered or not.
    for n in 1..50 {
        assert_eq!(app.anonymous.gql(&document(n, 100), org.clone()).await.code(), "UNAUTHENTICATED");
    }
    assert_eq!(app.service.graphql.documents.weight(), (little, one));
    // Members' documents are cached as long as there is room.
    for n in 1..50 {
        app.viewer.gql(&document(n, 100), org.clone()).await.data();
    }
    let (weight, count) = app.service.graphql.documents.weight();
    assert!(weight <= most && weight > most / 2, "{weight}");
    assert!(count > 5 && count < 49, "{count}");
}

#[tokio::test]
async fn a_document_is_answered_the_same_cached_or_not() {
    let kept = TestApp::start().await;
    let never = TestApp::start_with(|config| config.limits.document_cache_bytes = 0).await;
    for app in [&kept, &never] {
        let agent = app.agent().await;
        let read = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { id status } __typename }";
        for _ in 0..3 {
            let answer = app.viewer.gql(read, json!({ "o": app.org, "a": agent })).await.data();
            assert_eq!(
                answer,
                json!({ "agent": { "id": agent, "status": "STOPPED" }, "__typename": "Query" })
            );
            assert_eq!(
                app.stranger.gql(read, json!({ "o": app.org, "a": agent })).await.code(),
                "NOT_A_MEMBER"
            );
        }
    }
    assert_eq!(kept.service.graphql.documents.weight().1, 1);
    assert_eq!(never.service.graphql.documents.weight(), (0, 0));
}
