//! Attachments: files are uploaded, posted with a message, and downloaded but never displayed.

use std::time::Duration;

use muster::jobs::sweep;
use serde_json::json;

use crate::harness::{Answer, TestApp};

const UPLOAD: &str = "mutation($o:Id!,$i:UploadAttachmentInput!){uploadAttachment(orgId:$o,input:$i){\
    id filename mimeType sizeBytes url uploadedByAgentId}}";
const POST: &str = "mutation($o:Id!,$c:Id!,$i:PostMessageInput!){postMessage(orgId:$o,conversationId:$c,input:$i){\
    id attachments{id filename}}}";

fn upload_path(org: i64, filename: &str) -> String {
    format!("/v1/org/{org}/attachment?filename={filename}")
}

async fn put(app: &TestApp, filename: &str, mime_type: &str, content: Vec<u8>) -> Answer {
    let request = app.operator.request(reqwest::Method::POST, &upload_path(app.org, filename));
    Answer::of(request.header("content-type", mime_type).body(content)).await
}

#[tokio::test]
async fn a_file_is_uploaded_posted_and_downloaded() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let taken =
        put(&app, "..%2Freport%22.html", "text/html; charset=utf-8", b"<b>hi</b>".to_vec()).await.expect(201);
    let id = taken["id"].as_i64().unwrap();
    let url = format!("/v1/org/{}/attachment/{id}", app.org);
    let record = json!({
        "id": id, "filename": "report\".html", "mime_type": "text/html", "size_bytes": 9, "url": url,
        "uploaded_by_agent_id": null,
    });
    assert_eq!(taken, record);
    let input = json!({ "text": "see this", "attachmentIds": [id, id] });
    let variables = json!({ "o": app.org, "c": conversation, "i": input });
    let posted = app.operator.gql(POST, variables.clone()).await.data();
    assert_eq!(posted["postMessage"]["attachments"], json!([{ "id": id, "filename": "report\".html" }]));
    assert_eq!(app.operator.gql(POST, variables).await.code(), "VALIDATION_FAILED", "posted once");
    let page = app
        .viewer
        .get(&format!("/v1/org/{}/agent/{agent}/conversation/{conversation}/message", app.org))
        .await;
    assert_eq!(page.expect(200)["data"][0]["attachments"], json!([record]));
    let file = app.viewer.get(&url).await;
    assert_eq!((file.status, file.text.as_str()), (200, "<b>hi</b>"));
    assert_eq!(file.header("content-type"), "text/html");
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert_eq!(
        file.header("content-disposition"),
        "attachment; filename=\"report_.html\"; filename*=UTF-8''report%22.html"
    );
    assert!(file.header("content-security-policy").contains("sandbox"));
    let again = app.viewer.request(reqwest::Method::GET, &url).header("if-none-match", file.header("etag"));
    assert_eq!(Answer::of(again).await.status, 304);
    // A proxy may have weakened the tag, or may ask for several.
    for (known, status) in
        [(format!("\"other\", W/{}", file.header("etag")), 304), ("\"other\"".to_owned(), 200)]
    {
        let asked = app.viewer.request(reqwest::Method::GET, &url).header("if-none-match", &known);
        assert_eq!(Answer::of(asked).await.status, status, "{known}");
    }
}

#[tokio::test]
async fn without_permission_no_bytes_are_served() {
    let app = TestApp::start().await;
    let taken = put(&app, "a.txt", "text/plain", b"secret".to_vec()).await.expect(201);
    let id = taken["id"].as_i64().unwrap();
    let url = taken["url"].as_str().unwrap();
    assert_eq!(app.anonymous.get(url).await.problem(), (401, "UNAUTHENTICATED"));
    assert_eq!(app.stranger.get(url).await.problem(), (403, "NOT_A_MEMBER"));
    let inside = format!("/v1/org/{}/attachment/{id}", app.other_org);
    assert_eq!(app.stranger.get(&inside).await.problem(), (404, "NOT_FOUND"));
    assert_eq!(app.token(&["agent.view"]).await.get(url).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(
        app.viewer.get(&format!("/v1/org/{}/attachment/x", app.org)).await.problem(),
        (400, "MALFORMED_REQUEST")
    );
    assert_eq!(
        app.viewer.get(&format!("/v1/org/{}/attachment/{}", app.org, id + 1)).await.problem(),
        (404, "NOT_FOUND")
    );
    let path = upload_path(app.org, "a.txt");
    assert_eq!(app.viewer.post(&path, json!({})).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(app.anonymous.post(&path, json!({})).await.problem(), (401, "UNAUTHENTICATED"));
}

#[tokio::test]
async fn another_persons_file_cannot_be_posted() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let id = put(&app, "a.txt", "text/plain", b"mine".to_vec()).await.expect(201)["id"].clone();
    let variables = json!({ "o": app.org, "c": conversation, "i": { "text": "x", "attachmentIds": [id] } });
    let answer = app.admin.gql(POST, variables.clone()).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    assert_eq!(answer.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/input/attachmentIds/0");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM messages", vec![]).await, 0);
    app.operator.gql(POST, variables).await.data();
}

#[tokio::test]
async fn files_have_a_limit_of_their_own() {
    let app = TestApp::start_with(|config| {
        config.limits.body_bytes = 10_000;
        config.limits.attachment_bytes = 20_000;
    })
    .await;
    let taken = put(&app, "big", "", vec![7; 20_000]).await.expect(201);
    assert_eq!(
        (&taken["size_bytes"], &taken["mime_type"]),
        (&json!(20_000), &json!("application/octet-stream"))
    );
    assert_eq!(put(&app, "big", "a/b", vec![7; 20_001]).await.problem(), (413, "PAYLOAD_TOO_LARGE"));
    assert_eq!(put(&app, "empty", "a/b", vec![]).await.expect(201)["size_bytes"], 0);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM attachments", vec![]).await, 2);
}

#[tokio::test]
async fn an_upload_names_its_file() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/attachment", app.org);
    for (query, code) in [
        ("", "REQUIRED"),
        ("?name=a", "UNKNOWN_KEY"),
        ("?filename=a&filename=b", "REPEATED"),
        (&format!("?filename={}", "a".repeat(256)), "TOO_LONG"),
    ] {
        let answer = app.operator.post(&format!("{path}{query}"), json!({})).await;
        assert!(answer.violations().iter().any(|(_, found)| *found == code), "{query}");
    }
}

#[tokio::test]
async fn a_small_file_goes_through_the_schema_too() {
    let app = TestApp::start().await;
    let input =
        json!({ "filename": "a\u{202e}b.md", "mimeType": "text/markdown", "contentBase64": "aGVsbG8=" });
    let data = app.operator.gql(UPLOAD, json!({ "o": app.org, "i": input })).await.data();
    let record = &data["uploadAttachment"];
    assert_eq!((&record["filename"], &record["sizeBytes"]), (&json!("ab.md"), &json!(5)));
    assert_eq!(app.viewer.get(record["url"].as_str().unwrap()).await.text, "hello");
    let wrong = json!({ "filename": "a", "contentBase64": "%%%" });
    let answer = app.operator.gql(UPLOAD, json!({ "o": app.org, "i": wrong })).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    assert_eq!(answer.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/input/contentBase64");
}

#[tokio::test]
async fn a_file_not_posted_within_a_day_is_removed() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let posted = put(&app, "posted.txt", "text/plain", b"kept".to_vec()).await.expect(201)["id"].clone();
    put(&app, "forgotten.txt", "text/plain", b"gone".to_vec()).await.expect(201);
    let input = json!({ "text": "see this", "attachmentIds": [posted] });
    app.operator.gql(POST, json!({ "o": app.org, "c": conversation, "i": input })).await.data();
    app.clock.advance(Duration::from_hours(23));
    assert_eq!(sweep(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_hours(2));
    assert_eq!(sweep(&app.core).await.unwrap(), 1);
    for table in ["attachments", "attachment_blobs"] {
        assert_eq!(app.one::<i64>(&format!("SELECT COUNT(*) FROM {table}"), vec![]).await, 1, "{table}");
    }
}

/// The removal of a transcript holds files and waits for the sum. SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_forgotten_file_is_locked_after_its_sum() {
    let app = TestApp::start().await;
    put(&app, "forgotten.txt", "text/plain", b"gone".to_vec()).await.expect(201);
    app.clock.advance(Duration::from_hours(25));
    let (sum, file) =
        ("SELECT 1 FROM stored_bytes FOR UPDATE", "SELECT 1 FROM attachments FOR UPDATE NOWAIT");
    assert_eq!(app.while_held(sum, file, sweep(&app.core)).await.unwrap(), 1);
}
